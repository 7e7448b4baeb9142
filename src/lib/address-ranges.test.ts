import { describe, expect, test } from 'vitest'
import { isPublicAddress } from './address-ranges.ts'

describe('public addresses', () => {
  test.each(['1.1.1.1', '203.0.113.5', '100.63.255.255', '100.128.0.0', '172.32.0.1', '2606:4700::1111'])(
    '%s is one',
    (address) => expect(isPublicAddress(address)).toBe(true),
  )

  test.each([
    '0.0.0.0',
    '10.0.0.1',
    '100.64.0.1',
    '100.100.100.200',
    '127.0.0.1',
    '168.63.129.16',
    '169.254.169.254',
    '172.31.255.255',
    '192.0.0.192',
    '192.168.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:1.1.1.1',
    '::ffff:a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    '2002:a9fe:a9fe::',
    'fd00:ec2::254',
    'fe80::1',
    'ff02::1',
    'example.com',
    '',
    '1.1.1',
    '0x7f.1',
  ])('%s is none', (address) => expect(isPublicAddress(address)).toBe(false))
})
