// Writes boot files into a root that no process uses yet. What lies there is the machine's own, links it
// planted included: so the writing is done by the static helper in a jail whose root is the machine's, with
// no capability but the one to write where another user owns. Nothing there can lead out.

import { runOrThrow, ProcessFailed } from '../../lib/process.ts'
import { EngineError } from '../errors.ts'
import { createTar } from './tar.ts'

const WRITE_TIMEOUT_MS = 20_000

export async function writeBootFiles(
  rootfs: string,
  helperDir: string,
  files: { path: string; content: Buffer }[],
  signal: AbortSignal,
): Promise<void> {
  const tar = createTar(files.map(({ path, content }) => ({ path, content, mode: modeOf(content) })))
  try {
    await runInRoot(rootfs, helperDir, ['tar', '-x', '-f', '-', '-C', '/'], tar, signal)
  } catch (error) {
    if (!(error instanceof ProcessFailed)) throw error
    throw new EngineError('start_failed', "The boot files could not be written to the machine's disk.", {
      cause: error,
    })
  }
}

/** Runs a tool of the helper in a root that no process uses, jailed there. Throws ProcessFailed when it fails. */
export async function runInRoot(
  rootfs: string,
  helperDir: string,
  tool: string[],
  stdin: Buffer,
  signal: AbortSignal,
): Promise<void> {
  const jail = [
    '--bind',
    rootfs,
    '/',
    '--ro-bind',
    helperDir,
    '/run/berth',
    '--unshare-all',
    '--die-with-parent',
  ]
  const powers = ['--new-session', '--cap-drop', 'ALL', '--cap-add', 'CAP_DAC_OVERRIDE', '--clearenv']
  await runOrThrow('bwrap', [...jail, ...powers, '/run/berth/busybox', ...tool], {
    timeoutMs: WRITE_TIMEOUT_MS,
    signal,
    stdin,
  })
}

/** A boot file that names its interpreter is a program. */
function modeOf(content: Buffer): number {
  return content.subarray(0, 2).toString('latin1') === '#!' ? 0o755 : 0o644
}
