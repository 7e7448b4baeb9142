import { expect, test } from 'vitest'
import type { Suite } from '../suite.ts'

/** What root in a machine is kept from (reliability I23). gVisor's namespaces and mounts are its own. */
export function postureClaims(suite: Suite): void {
  const machine = suite.shared()
  const fails = async (script: string) => (await suite.sh(machine(), script)).exitCode !== 0

  const onHostKernel = test.skipIf(suite.options.isolation === 'gvisor')

  onHostKernel('root in a machine makes no namespace', async () => {
    for (const kind of ['--user', '--net', '--pid --fork', '--mount', '--ipc', '--uts']) {
      expect([kind, await fails(`unshare ${kind} true`)]).toEqual([kind, true])
    }
  })

  onHostKernel('root in a machine mounts nothing and unmounts nothing', async () => {
    expect(await fails('mount -t tmpfs none /mnt')).toBe(true)
    expect(await fails('mount --bind / /mnt')).toBe(true)
    expect(await fails('umount /proc')).toBe(true)
  })

  test('root in a machine opens no device but harmless ones', async () => {
    for (const disk of ['7 0', '8 0', '254 0', '259 0']) {
      expect(await fails(`rm -f /root/disk; mknod /root/disk b ${disk}; head -c 1 /root/disk`)).toBe(true)
    }
    const { stdout } = await suite.sh(machine(), 'find /dev -type b; ls /dev')
    expect(stdout).not.toMatch(/mem|kmsg|kvm|loop|sda|vda/)
  })

  test('kernel settings cannot be written', async () => {
    for (const path of [
      '/proc/sys/kernel/core_pattern',
      '/proc/sysrq-trigger',
      '/sys/kernel/uevent_helper',
    ]) {
      expect([path, await fails(`echo x > ${path}`)]).toEqual([path, true])
    }
  })

  test('a setuid program gives nobody the rights of its owner', async () => {
    const script =
      'cp /usr/bin/id /tmp/id; chmod u+s /tmp/id; setpriv --reuid 1234 --clear-groups --regid 1234 /tmp/id -u'
    expect((await suite.sh(machine(), script)).stdout).toBe('1234\n')
  })

  test('nothing of the host is seen in the process table', async () => {
    const { stdout } = await suite.sh(machine(), 'cat /proc/[0-9]*/cmdline | tr "\\0" " "')
    expect(stdout).not.toMatch(/conmon|main\.ts|postgres/)
  })
}
