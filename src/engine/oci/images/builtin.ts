// The images that need no registry (design 3): Debian packages, and how to run them. Most have one version,
// Debian's; `latest` is the first of that name.

import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { AheadOfOrders, ImageConfig } from '../../engine.ts'

export type BuiltIn = {
  name: string
  version: string
  packages: string[]
  /**
   * A command in the image, run as root after the installation: it creates data that every unit starts with, so that
   * no start has to.
   */
  prepare?: string
  /** What `prepare` makes in /run stays. */
  keepsRun?: true
  volumeData?: VolumeData
  /** Paths that the installation created and the image does not need. */
  remove?: string[]
  env?: Record<string, string>
  cmd: string[]
  ahead?: AheadOfOrders
  ports?: number[]
  /** A script under `builtin/`, run as the entrypoint: prepares the data directory and drops root. */
  script?: string
  /** Other files under `builtin/`, by where they are in the image, before `prepare`. All are readable, and can be executed. */
  files?: Record<string, string>
  /** Packages of npm that this installation has, by where they are in the image. */
  npmPackages?: Record<string, NpmPackage>
  /** The process gets this signal instead of SIGTERM. */
  stopSignal?: 'SIGINT' | 'SIGQUIT'
}

/** A directory or a program of an installed package. */
export type NpmPackage = { name: string; path?: string }

/**
 * What a new volume begins with: the content of an archive that `prepare` made. The engine unpacks it when it creates the
 * volume; in a sandbox, opening each of a thousand files takes seconds.
 */
export type VolumeData = {
  /** Where the volume must be mounted. */
  mount: string
  /** Its path in the image. */
  archive: string
  /** The name in the volume that it gets. The image's script takes it from there, if there is none of its own yet. */
  directory: string
}

export const entrypointPath = '/usr/local/bin/berth-entrypoint'

/** Changes with the build procedure, so that older images are not taken for new ones. */
const RECIPE = 3

export function referenceOf({ name, version }: BuiltIn): string {
  return `berth.local/${name}:${version}`
}

/** The digest of how an image is made and run. A build is named by this and its packages. */
export async function definitionDigest(definition: BuiltIn): Promise<string> {
  const script = await readScript(definition)
  const files = await readFiles(definition)
  const npm = await npmSourcesOf(definition)
  // Of an image without such files as it always was: it is not made again.
  const added = {
    ...(files.length === 0 ? {} : { files: files.map(([path, content]) => [path, asText(content)]) }),
    ...(npm.length === 0 ? {} : { npm: npm.map(({ to, version }) => [to, version]) }),
  }
  const made = JSON.stringify({ RECIPE, arch: process.arch, definition, script, ...added })
  return `sha256:${createHash('sha256').update(made).digest('hex')}`
}

export async function readScript({ script }: BuiltIn): Promise<string | null> {
  return script === undefined ? null : await readFile(sourceOf(script), 'utf8')
}

/** Each with its path in the image. */
export async function readFiles({ files = {} }: BuiltIn): Promise<[path: string, content: Buffer][]> {
  return await Promise.all(
    Object.entries(files).map(
      async ([path, name]): Promise<[string, Buffer]> => [path, await readFile(sourceOf(name))],
    ),
  )
}

function asText(content: Buffer): string {
  return content.toString(isUtf8(content) ? 'utf8' : 'base64')
}

/** `from`: its path on this host; `to`: in the image. */
export type NpmSource = { from: string; to: string; version: string }

/** Throws if this installation lacks one of them. */
export async function npmSourcesOf({ npmPackages = {} }: BuiltIn): Promise<NpmSource[]> {
  // Not by resolving the file itself: a package need not export it.
  const { resolve } = createRequire(import.meta.url)
  return await Promise.all(
    Object.entries(npmPackages).map(async ([to, { name, path = '.' }]): Promise<NpmSource> => {
      const about = (resolve.paths(name) ?? [])
        .map((path) => join(path, name, 'package.json'))
        .find(existsSync)
      if (about === undefined) throw new Error(`The package ${name} is not installed.`)
      const { version } = JSON.parse(await readFile(about, 'utf8')) as { version: string }
      return { from: join(dirname(about), path), to, version }
    }),
  )
}

/** A file under `builtin/`. */
export function sourceOf(name: string): URL {
  return new URL(`./builtin/${name}`, import.meta.url)
}

const signalNumbers = { SIGINT: 2, SIGQUIT: 3 }
const SIGTERM = 15

/** Every image runs under an init, which reaps orphans and forwards signals. */
export function builtInConfig(definition: BuiltIn): ImageConfig {
  const { ahead, stopSignal, script, env = {} } = definition
  const rewrite = stopSignal ? ['--rewrite', `${SIGTERM}:${signalNumbers[stopSignal]}`] : []
  return {
    env: Object.entries({ PATH: searchPath(), LANG: 'C.UTF-8', ...env }).map(
      ([name, value]) => `${name}=${value}`,
    ),
    entrypoint: ['dumb-init', '--single-child', ...rewrite, '--', ...(script ? [entrypointPath] : [])],
    cmd: definition.cmd,
    workingDir: '/',
    user: '',
    exposedPorts: definition.ports ?? [],
    ...(ahead && { ahead }),
  }
}

export function searchPath(...first: string[]): string {
  return [...first, '/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'].join(':')
}
