import { describe, expect, test } from 'vitest'
import { addressMatcher, isPublicAddress } from './address-ranges.ts'

describe('isPublicAddress', () => {
  test.each(['1.1.1.1', '203.0.113.5', '100.63.255.255', '100.128.0.0', '172.32.0.1', '2606:4700::1111'])(
    'accepts %s',
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
  ])('rejects %s', (address) => expect(isPublicAddress(address)).toBe(false))
})

test('addressMatcher matches single addresses and ranges, also for IPv4-mapped IPv6 addresses', () => {
  const matches = addressMatcher(['10.0.0.1', '192.0.2.0/24', 'fd00::/8', '2001:db8::1'])
  for (const address of ['10.0.0.1', '::ffff:10.0.0.1', '192.0.2.255', 'fd12::9', '2001:db8:0::1']) {
    expect([address, matches(address)]).toEqual([address, true])
  }
  for (const address of [
    '10.0.0.2',
    '::ffff:10.0.0.2',
    '192.0.3.0',
    'fe80::1',
    '2001:db8::2',
    '',
    'x',
    '10.0.0.1:80',
  ]) {
    expect([address, matches(address)]).toEqual([address, false])
  }
  expect(addressMatcher([])('127.0.0.1')).toBe(false)
})
