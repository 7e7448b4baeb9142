// The full command line of each class's program, because a missing flag would weaken every machine without any other symptom.

import { expect, it } from 'vitest'
import { driverDefaults } from './driver.ts'
import { gvisorDriver } from './gvisor.ts'
import { runcDriver } from './runc.ts'

const files = { processFile: '/process', pidFile: '/pid' }

it('runsc runs with its complete list of hardening flags', () => {
  const driver = gvisorDriver('/root', '1', { program: 'p', path: '/runsc' }, driverDefaults)
  const globalArgs = [
    '--root',
    '/root',
    '--network=sandbox',
    '--host-uds=none',
    '--host-fifo=none',
    '--directfs=false',
    '--overlay2=none',
    '--file-access=exclusive',
    '--file-access-mounts=exclusive',
    '--cpu-num-from-quota=true',
    '--platform=systrap',
    '--net-raw=false',
  ]
  expect(driver.globalArgs).toEqual(globalArgs)
  const exec = ['exec', '--process', '/process', '--pid-file', '/pid']
  const stderr = ['--pass-fd', '3:2']
  expect(driver.execArgs('unit_1-1', files)).toEqual([...globalArgs, ...exec, 'unit_1-1'])
  expect(driver.execArgs('unit_1-1', files, { stderrFd: 3 })).toEqual([
    ...globalArgs,
    ...exec,
    ...stderr,
    'unit_1-1',
  ])
})

it('runc runs with its state directory and the cgroup of a command', () => {
  const driver = runcDriver('/root', '1', driverDefaults)
  expect(driver.globalArgs).toEqual(['--root', '/root'])
  const exec = ['exec', '--detach', '--process', '/process', '--pid-file', '/pid']
  expect(driver.execArgs('unit_1-1', files, { cgroupChild: 'exec-1' })).toEqual([
    ...driver.globalArgs,
    '--log',
    '/dev/null',
    ...exec,
    '--cgroup',
    'exec-1',
    'unit_1-1',
  ])
})
