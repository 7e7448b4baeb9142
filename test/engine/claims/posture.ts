// What a machine is allowed to do on the host (reliability I2).

import { arch } from 'node:os'
import { expect, test } from 'vitest'
import type { Suite } from '../suite.ts'

/** Linux numbers of system calls that no machine may make to the host kernel. */
const refusedCalls: Record<string, Record<string, number>> = {
  x64: { add_key: 248, keyctl: 250, perf_event_open: 298, bpf: 321, userfaultfd: 323, io_uring_setup: 425 },
  arm64: { add_key: 217, keyctl: 219, perf_event_open: 241, bpf: 280, userfaultfd: 282, io_uring_setup: 425 },
}
const ENOSYS = 38
const EPROTONOSUPPORT = 93
const EAFNOSUPPORT = 97

const SYS_IOCTL = process.arch === 'arm64' ? 29 : 16

/** What root in a machine cannot do (reliability I23). gVisor has its own namespaces and mounts. */
export function postureClaims(suite: Suite): void {
  const machine = suite.shared()
  const fails = async (script: string) => (await suite.sh(machine(), script)).exitCode !== 0

  const onHostKernel = test.skipIf(suite.options.isolation === 'gvisor')

  onHostKernel('root in a machine cannot create namespaces', async () => {
    for (const kind of ['--user', '--net', '--pid --fork', '--mount', '--ipc', '--uts']) {
      expect([kind, await fails(`unshare ${kind} true`)]).toEqual([kind, true])
    }
  })

  onHostKernel(
    'a machine cannot read the host’s boot options, disks, hardware or loaded modules',
    async () => {
      const files =
        'cmdline config.gz diskstats iomem ioports kallsyms locks modules partitions slabinfo swaps vmallocinfo'
      const directories =
        'block class/block class/dmi dev/block devices/virtual/block devices/virtual/dmi fs/btrfs kernel/slab firmware'
      const { stdout } = await suite.sh(
        machine(),
        `for f in ${files}; do cat /proc/$f 2>/dev/null; done; for d in ${directories}; do ls -A /sys/$d 2>/dev/null; done`,
      )
      expect(stdout).toBe('')
    },
  )

  onHostKernel('root in a machine cannot mount or unmount', async () => {
    expect(await fails('mount -t tmpfs none /mnt')).toBe(true)
    expect(await fails('mount --bind / /mnt')).toBe(true)
    expect(await fails('umount /proc')).toBe(true)
  })

  onHostKernel('system calls that could bypass the isolation fail with ENOSYS', async () => {
    const calls = Object.entries(refusedCalls[arch()] ?? {})
    // Some of them the kernel refuses to root without powers, too, but not as a call that does not exist.
    const tries = calls.map(
      ([name, number]) => `syscall(${number}, 0, 0, 0, 0, 0); print "${name} ", $!+0, "\\n";`,
    )
    const { stdout } = await suite.exec(machine(), ['perl', '-e', tries.join(' ')])
    expect(stdout.trim().split('\n')).toEqual(calls.map(([name]) => `${name} ${ENOSYS}`))
    expect(calls.length).toBeGreaterThan(0)
  })

  onHostKernel('a machine can open Unix, IPv4, IPv6 and route sockets only', async () => {
    const tries = `
      sub try { my ($name, $family, $type, $protocol) = @_;
        print "$name ", (socket(my $s, $family, $type, $protocol) ? 'ok' : $!+0), "\\n" }
      try('unix', 1, 1, 0); try('inet', 2, 1, 0); try('inet6', 10, 2, 0); try('route', 16, 3, 0);
      try("netlink $_", 16, 3, $_) for 1 .. 22;
      try("family $_", $_, $_ == 38 ? 5 : 2, 0) for 0, 3 .. 9, 11 .. 15, 17 .. 46;
      print 'pair ', (socketpair(my $a, my $b, 1, 1, 0) ? 'ok' : $!+0), "\\n";
      print 'pair of vsock ', (socketpair(my $c, my $d, 40, 1, 0) ? 'ok' : $!+0), "\\n";`
    const { stdout } = await suite.exec(machine(), ['perl', '-e', tries])
    const answers = stdout.trim().split('\n')
    const other = (name: string, answer: number) => (line: string) =>
      line.startsWith(name) && line.split(' ').at(-1) !== String(answer)
    expect(answers.filter((line) => line.endsWith(' ok'))).toEqual([
      'unix ok',
      'inet ok',
      'inet6 ok',
      'route ok',
      'pair ok',
    ])
    expect(answers.filter(other('netlink', EPROTONOSUPPORT))).toEqual([])
    expect(answers.filter(other('family', EAFNOSUPPORT))).toEqual([])
    expect(answers).toContain(`pair of vsock ${EAFNOSUPPORT}`)
    expect(answers).toHaveLength(4 + 22 + 43 + 2)
  })

  test('root in a machine has exactly the listed capabilities', async () => {
    const { stdout } = await suite.sh(machine(), "grep -E '^Cap(Inh|Prm|Eff|Bnd)' /proc/self/status")
    expect(stdout.trim().replaceAll('\t', ' ').split('\n')).toEqual([
      'CapInh: 0000000000000000',
      'CapPrm: 00000000a00405fb',
      'CapEff: 00000000a00405fb',
      'CapBnd: 00000000a00405fb',
    ])
  })

  onHostKernel('root in a machine can use no Btrfs ioctl other than reflinks', async () => {
    const ref = await suite.running({}, { volume: { mount: '/data', gb: 1 } })
    // Subvolumes, snapshots, flags, send; the same again where the kernel drops the upper half of a number.
    const requests = [0x5000940e, 0x50009418, 0x50009401, 0x50009417, 0x4008941a, 0x40489426, 0x1_5000940e]
    const asked = await Promise.all(
      requests.map(async (request) => {
        const script =
          'open my $d, "<", "/data" or die; my $b = pack "q x4088", fileno $d; substr $b, 8, 3, "new"; ' +
          `print syscall(${SYS_IOCTL}, fileno $d, $ARGV[0] + 0, $b) == -1 ? $!+0 : "done"`
        return (await suite.exec(ref, ['perl', '-e', script, String(request)])).stdout
      }),
    )
    expect(asked).toEqual(requests.map(() => '38'))
    const { stdout } = await suite.sh(
      ref,
      "cd /data; echo x > a; cp --reflink=always a b && cat b; ls; perl -e 'ioctl STDIN, 0x5401, my $b or print $!+0'",
    )
    expect(stdout).toBe('x\na\nb\n25')
  })

  test('root in a machine can open harmless devices only', async () => {
    for (const disk of ['7 0', '8 0', '254 0', '259 0']) {
      expect(await fails(`rm -f /root/disk; mknod /root/disk b ${disk}; head -c 1 /root/disk`)).toBe(true)
    }
    const { stdout } = await suite.sh(machine(), 'find /dev -type b; ls /dev')
    expect(stdout).not.toMatch(/mem|kmsg|kvm|loop|sda|vda/)
  })

  test('kernel settings are not writable', async () => {
    for (const path of [
      '/proc/sys/kernel/core_pattern',
      '/proc/sysrq-trigger',
      '/sys/kernel/uevent_helper',
    ]) {
      expect([path, await fails(`echo x > ${path}`)]).toEqual([path, true])
    }
  })

  test('a setuid program does not grant its owner’s rights', async () => {
    const script =
      'cp /usr/bin/id /tmp/id; chmod u+s /tmp/id; setpriv --reuid 1234 --clear-groups --regid 1234 /tmp/id -u'
    expect((await suite.sh(machine(), script)).stdout).toBe('1234\n')
  })

  test('processes of the host are not visible', async () => {
    const { stdout } = await suite.sh(machine(), 'cat /proc/[0-9]*/cmdline | tr "\\0" " "')
    expect(stdout).not.toMatch(/conmon|main\.ts|postgres/)
  })
}
