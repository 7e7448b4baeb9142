// The programs that Berth runs, their Debian packages, and the oldest version each is known to work with.

import { MINUTE } from '../lib/clock.ts'
import { isOlder } from '../lib/versions.ts'
import { programsNamed, run } from '../lib/process.ts'
import { type Check, fail, type Finding, ok, warn } from './check.ts'

type Program = {
  command: string
  args: string[]
  package: string
  minimum: string
  /** What does not work if the program is missing; Berth still starts. */
  optional?: string
}

/** The minimum is the version in Debian 12, unless a comment gives a reason for a newer one. */
export const programs = [
  { command: 'runc', args: ['--version'], package: 'runc', minimum: '1.1.5' },
  {
    command: 'runsc',
    args: ['--version'],
    package: 'runsc',
    // Debian 12 has a version of 2022 without the systrap platform; its backports have this one.
    minimum: '20240729',
    optional: 'the isolation class gvisor',
  },
  { command: 'conmon', args: ['--version'], package: 'conmon', minimum: '2.1.6' },
  { command: 'skopeo', args: ['--version'], package: 'skopeo', minimum: '1.9' },
  { command: 'umoci', args: ['--version'], package: 'umoci', minimum: '0.4.7' },
  { command: 'bwrap', args: ['--version'], package: 'bubblewrap', minimum: '0.8' },
  { command: 'btrfs', args: ['--version'], package: 'btrfs-progs', minimum: '6.2' },
  { command: 'nft', args: ['--version'], package: 'nftables', minimum: '1.0.6' },
  { command: 'ip', args: ['-V'], package: 'iproute2', minimum: '6.1' },
  { command: 'busybox', args: [], package: 'busybox-static', minimum: '1.35' },
  { command: 'mmdebstrap', args: ['--version'], package: 'mmdebstrap', minimum: '1.3' },
] as const satisfies Program[]

export const programChecks: Check[] = programs.map((program) => ({
  name: program.command,
  run: () => checkProgram(program),
}))

/** Those without which Berth cannot start, none of which is started to see whether it is there. */
export const presenceChecks: Check[] = programs
  .filter((program: Program) => program.optional === undefined)
  .map((program) => ({
    name: program.command,
    run: () => presenceOf(program),
  }))

export async function presenceOf(program: Program): Promise<Finding> {
  const found = await programsNamed(program.command)
  return found.length > 0 ? ok('installed') : fail('not installed', adviceOn(program))
}

function adviceOn(program: Program): string {
  const loss = program.optional === undefined ? '' : ` for ${program.optional}`
  return `Run "npm run setup", or install the Debian package ${program.package}${loss}.`
}

async function checkProgram(program: Program): Promise<Finding> {
  const missing = program.optional === undefined ? fail : warn
  const install = adviceOn(program)
  const shown = await run(program.command, program.args, { timeoutMs: MINUTE }).catch(() => null)
  if (!shown) return missing('not installed', install)
  const version = versionIn(shown.stdout + shown.stderr)
  if (version === null) return warn('its version is unknown', `It should be ${program.minimum} or newer.`)
  if (isOlder(version, program.minimum)) {
    return missing(`version ${version}, older than ${program.minimum}`, install)
  }
  return ok(version)
}

/** Returns the first text that looks like a version: `1.1.5`, `20240729.0`. */
export function versionIn(text: string): string | null {
  // Debian's runsc reports 0.0~20240729.0: the version is after the tilde.
  return /(?:0\.0~|release-)?(\d+(?:\.\d+)+)/.exec(text.replace(/\b0\.0~/, ''))?.[1] ?? null
}
