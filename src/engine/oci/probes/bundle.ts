// The containers of probes, which contain only the static helper.

import type { Paths } from '../paths.ts'
import type { Driver } from '../runtime/driver.ts'

/** A name per class, since both are probed at once. */
export function probeNamespace(driver: Driver, instanceId: string): string {
  return `berth-${instanceId}-probe-${driver.class}`
}

export function probeConfig(paths: Paths, namespace: string, rootfs: string, args: string[]) {
  return {
    ociVersion: '1.0.2',
    root: { path: rootfs, readonly: false },
    process: {
      user: { uid: 0, gid: 0 },
      args,
      env: [],
      cwd: '/',
      noNewPrivileges: true,
    },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
      { destination: '/helper', type: 'bind', source: paths.helper, options: ['bind', 'ro'] },
    ],
    linux: {
      namespaces: [
        { type: 'pid' },
        { type: 'ipc' },
        { type: 'uts' },
        { type: 'mount' },
        { type: 'network', path: `/run/netns/${namespace}` },
      ],
    },
  }
}
