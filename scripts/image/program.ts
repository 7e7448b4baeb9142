// The second layer: this checkout with the libraries that it runs with, what users install, and the gVisor that it pins.

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { loadBuildSettings } from '../../src/config.ts'
import { buildRunsc } from '../../src/engine/oci/runsc-build/build.ts'
import { BUILT_RUNSC } from '../../src/engine/oci/runsc-build/pinned.ts'
import type { Layer, Layout } from './layout.ts'

const run = promisify(execFile)

const HOME = 'opt/berth'
export const RUNSC_IN_IMAGE = BUILT_RUNSC.slice(1)

/** What is in git of these, without tests. */
// biome-ignore format: a list
const shipped = [
  'package.json', 'package-lock.json', 'LICENSE', 'NOTICE', 'THIRD_PARTY_NOTICES.md', 'CHANGELOG.md', 'README.md', 'openapi.json',
  'docs', 'examples', 'packages', 'scripts', 'src',
]
const withoutTests = [':!*.test.ts', ':!packages/*/test']

/** `tree`: where the layer's files are collected. `finish` adds the last ones to the program's directory. */
export async function programLayer(
  layout: Layout,
  {
    project,
    tree,
    epoch,
    finish,
  }: { project: string; tree: string; epoch: number; finish: (directory: string) => Promise<void> },
): Promise<Layer> {
  const home = join(tree, HOME)
  await mkdir(home, { recursive: true })
  const { stdout: files } = await run('git', ['ls-files', '-z', '--', ...shipped, ...withoutTests], {
    cwd: project,
    maxBuffer: 64 * 1024 * 1024,
  })
  for (const file of files.split('\0').filter(Boolean)) {
    await mkdir(dirname(join(home, file)), { recursive: true })
    await cp(join(project, file), join(home, file), { verbatimSymlinks: true })
  }
  await addBuilt(project, home)
  await addLibraries(home)
  await addPrograms(tree)
  await finish(home)
  return await layout.addLayer(await archive(tree, epoch))
}

/** The tools that build are of the checkout: the image has none. */
async function addBuilt(project: string, home: string): Promise<void> {
  const script = (name: string, ...args: string[]) =>
    run(process.execPath, [join(project, 'scripts', name), ...args], { cwd: project })
  await script('build-dashboard.ts')
  const dashboard = 'packages/dashboard/dist'
  await cp(join(project, dashboard), join(home, dashboard), { recursive: true })
  await script('build-packages.ts', '--without-code-cache', '--out', join(home, 'dist/packages'))
}

async function addLibraries(home: string): Promise<void> {
  const args = ['ci', '--omit=dev', '--workspaces=false', '--ignore-scripts', '--no-audit', '--no-fund']
  await run('npm', args, { cwd: home })
}

async function addPrograms(tree: string): Promise<void> {
  const bin = join(tree, 'usr/local/bin')
  await mkdir(bin, { recursive: true })
  await symlink(`/${HOME}/node_modules/.bin/node`, join(bin, 'node'))
  await buildRunsc(BUILT_RUNSC, loadBuildSettings())
  await cp(dirname(BUILT_RUNSC), join(tree, dirname(RUNSC_IN_IMAGE)), { recursive: true })
}

/** In the order of their names, with one time, of root, and readable by all. */
async function archive(tree: string, epoch: number) {
  await run('chmod', ['-R', 'u+rw,go-w,a+rX', tree])
  const args = [
    '--sort=name',
    `--mtime=@${epoch}`,
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--format=posix',
    '--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime',
    '--hard-dereference',
  ]
  const child = spawn('tar', ['-C', tree, ...args, '-c', '.'], { stdio: ['ignore', 'pipe', 'inherit'] })
  void once(child, 'close').then(([code]) => {
    if (code !== 0) child.stdout.destroy(new Error(`tar ended with ${code}`))
  })
  return child.stdout
}
