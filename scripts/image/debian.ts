// The first layer: Debian with the programs that a host runs, by mmdebstrap.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Layer, Layout } from './layout.ts'

export type DebianPackage = { name: string; version: string; architecture: string; source: string }

export const SUITE = 'trixie'

/** Of scripts/setup.sh, without its gVisor, which is older than ours. */
// biome-ignore format: a list
const packages = [
  'runc', 'conmon', 'skopeo', 'umoci', 'btrfs-progs', 'nftables', 'iproute2', 'busybox-static', 'mmdebstrap', 'bubblewrap',
  'libnss-myhostname', 'criu', 'ca-certificates',
]

/** The next image has to have the same numbers: files on hosts are theirs. They are none that a node gives to its own users. */
const users = ['berth', 'berth-gateway', 'berth-egress', 'berth-postgres', 'berth-images']
const FIRST_ID = 65_070

const dpkgOptions = [
  'path-exclude=/usr/share/doc/*',
  'path-include=/usr/share/doc/*/copyright',
  'path-exclude=/usr/share/man/*',
  'path-exclude=/usr/share/info/*',
  'path-exclude=/usr/share/locale/*',
  'path-exclude=/usr/share/lintian/*',
]

const NOLOGIN = '--no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin'
const hooks = [
  ...users.flatMap((user, index) => [
    `chroot "$1" groupadd --gid ${FIRST_ID + index} ${user}`,
    `chroot "$1" useradd --uid ${FIRST_ID + index} --gid ${FIRST_ID + index} ${NOLOGIN} ${user}`,
  ]),
  // Of this machine, or of the time of the build.
  'rm -f "$1"/etc/hostname "$1"/etc/resolv.conf "$1"/etc/*- "$1"/var/lib/dpkg/*-old "$1"/var/cache/debconf/*-old',
  'rm -rf "$1"/var/log/* "$1"/var/cache/ldconfig/aux-cache "$1"/var/lib/apt/lists/*',
  `chroot "$1" dpkg-query -W -f='\${Package} \${Version} \${Architecture} \${source:Package}\\n' >"$BERTH_PACKAGES"`,
]

export async function debianLayer(
  layout: Layout,
  { archive, epoch, work }: { archive: string; epoch: number; work: string },
): Promise<{ layer: Layer; packages: DebianPackage[] }> {
  const list = join(work, 'packages')
  const of = archive.replace(/\/$/, '')
  const child = spawn(
    'mmdebstrap',
    [
      '--mode=root',
      '--format=tar',
      '--variant=minbase',
      `--include=${packages.join(',')}`,
      ...dpkgOptions.map((option) => `--dpkgopt=${option}`),
      ...hooks.map((hook) => `--customize-hook=${hook}`),
      SUITE,
      '-',
      `deb ${of} ${SUITE} main`,
      `deb ${of} ${SUITE}-updates main`,
      `deb ${of.replace(/\/debian(?=\/|$)/, '/debian-security')} ${SUITE}-security main`,
    ],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, LC_ALL: 'C.UTF-8', SOURCE_DATE_EPOCH: String(epoch), BERTH_PACKAGES: list },
    },
  )
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4000)))
  const ended = once(child, 'close') as Promise<[number | null]>
  const layer = await layout.addLayer(child.stdout)
  if ((await ended)[0] !== 0) throw new Error(`mmdebstrap failed:\n${said}`)
  const lines = (await readFile(list, 'utf8')).trim().split('\n').toSorted()
  return {
    layer,
    packages: lines.map((line) => {
      const [name = '', version = '', architecture = '', source = ''] = line.split(' ')
      return { name, version, architecture, source }
    }),
  }
}
