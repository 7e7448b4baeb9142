// The description of a bare container for a runtime that is called by hand: the image's root, read-only, and no network.

import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { run, runOrThrow } from '../src/lib/process.ts'

type Spec = {
  annotations?: Record<string, string>
  process: { terminal: boolean; args: string[] }
  root: { path: string; readonly: boolean }
  linux: { namespaces: { type: string }[] }
  mounts: { type: string }[]
}

/** Makes the directory of the bundle. */
export async function writeBundle(
  bundle: string,
  {
    rootfs,
    args,
    annotations = {},
  }: { rootfs: string; args: string[]; annotations?: Record<string, string> },
): Promise<void> {
  await mkdir(bundle)
  await runOrThrow('runc', ['spec', '--bundle', bundle], { timeoutMs: 60_000 })
  const path = join(bundle, 'config.json')
  const spec = JSON.parse(await readFile(path, 'utf8')) as Spec
  Object.assign(spec.process, { terminal: false, args })
  spec.root = { path: rootfs, readonly: true }
  // This host's control groups cannot be mounted in a container.
  spec.linux.namespaces = spec.linux.namespaces.filter(({ type }) => type !== 'cgroup')
  spec.mounts = spec.mounts.filter(({ type }) => type !== 'cgroup')
  spec.annotations = annotations
  await writeFile(path, JSON.stringify(spec))
}

/** Removes the directory in which containers were made by hand, with the runtime's state in `state`, and what gVisor mounts there. */
export async function removeByHand(directory: string): Promise<void> {
  await run('umount', ['--quiet', join(directory, 'state', 'null-netns')], { timeoutMs: 60_000 })
  await rm(directory, { recursive: true, force: true })
}
