// The source of Debian packages for built-in images: the same as this host's, so that it works here.

import { run } from '../kernel/programs.ts'

export const SUITE = 'bookworm'
const DEBIAN = 'http://deb.debian.org/debian'
const SECURITY = 'http://security.debian.org/debian-security'

/** The lines of a sources.list for Debian's own servers. */
export const publicSources = sourcesFrom(DEBIAN, SECURITY)

/** This host's sources of Debian packages, else Debian's own servers. */
export async function hostSources(): Promise<string[]> {
  const targets = await run(
    'apt-get',
    ['indextargets', '--format', '$(LABEL) $(REPO_URI)', 'Created-By: Packages'],
    { timeoutMs: 30_000 },
  )
  const uriOf = (label: string) =>
    targets.stdout
      .split('\n')
      .find((line) => line.startsWith(`${label} http`))
      ?.slice(label.length + 1)
  return sourcesFrom(uriOf('Debian') ?? DEBIAN, uriOf('Debian-Security') ?? SECURITY)
}

/** Proxies and date checks: if apt works on this host, it must work in the build. */
export async function hostAptOptions(): Promise<string[]> {
  const dump = await run('apt-config', ['dump', 'Acquire'], { timeoutMs: 30_000 })
  return dump.stdout
    .split('\n')
    .filter((line) => /^Acquire::(?:https?::|Check-Valid-Until |Check-Date |Retries )/.test(line))
}

function sourcesFrom(debian: string, security: string): string[] {
  return [
    `deb ${debian} ${SUITE} main`,
    `deb ${debian} ${SUITE}-updates main`,
    `deb ${security} ${SUITE}-security main`,
  ]
}
