// The full command line of each runtime, because a missing flag would weaken every machine without any other symptom.

import { expect, it } from 'vitest'
import { execArgs, runcRuntime, runscRuntime, runtimeDefaults } from './runtime.ts'

const files = { processFile: '/process', pidFile: '/pid' }

it('runsc runs with its complete list of hardening flags', () => {
  const runtime = runscRuntime('/root', '1', runtimeDefaults)
  const globalArgs = [
    '--root',
    '/root',
    '--platform=systrap',
    '--network=sandbox',
    '--net-raw=false',
    '--host-uds=none',
    '--host-fifo=none',
    '--directfs=false',
    '--overlay2=none',
    '--file-access=exclusive',
    '--file-access-mounts=exclusive',
    '--cpu-num-from-quota=true',
  ]
  expect(runtime.globalArgs).toEqual(globalArgs)
  const exec = ['exec', '--process', '/process', '--pid-file', '/pid']
  const stderr = ['--pass-fd', '3:2']
  expect(execArgs(runtime, 'unit_1-1', files)).toEqual([...globalArgs, ...exec, 'unit_1-1'])
  expect(execArgs(runtime, 'unit_1-1', files, { stderrFd: 3 })).toEqual([
    ...globalArgs,
    ...exec,
    ...stderr,
    'unit_1-1',
  ])
})

it('runc runs with its state directory and the cgroup of a command', () => {
  const runtime = runcRuntime('/root', '1', runtimeDefaults)
  expect(runtime.globalArgs).toEqual(['--root', '/root'])
  const exec = ['exec', '--detach', '--process', '/process', '--pid-file', '/pid']
  expect(execArgs(runtime, 'unit_1-1', files, { cgroupChild: 'exec-1' })).toEqual([
    ...runtime.globalArgs,
    '--log',
    '/dev/null',
    ...exec,
    '--cgroup',
    'exec-1',
    'unit_1-1',
  ])
})
