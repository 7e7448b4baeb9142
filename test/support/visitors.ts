// What people visit a URL with: git, a browser that trusts an authority of its own choosing, a large download.

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { get } from 'node:https'
import { join, relative } from 'node:path'
import { promisify } from 'node:util'
import { type BrowserContext, chromium } from 'playwright-core'
import { chromiumOptions } from './chromium.ts'

const run = promisify(execFile)

export type Files = Record<string, string | { base64: string }>

/** Within a directory of the caller's: a repository with one file, README, as any web server can serve it. */
export async function makeRepository(home: string, content: string): Promise<Files> {
  const [work, bare] = [join(home, 'work'), join(home, 'bare.git')]
  const git = (...args: string[]) => run('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args])
  await mkdir(work)
  await writeFile(join(work, 'README'), content)
  await git('init', '--quiet', '--template=', work)
  await git('-C', work, 'add', '.')
  await git('-C', work, 'commit', '--quiet', '--message=first')
  await git('clone', '--quiet', '--bare', '--template=', work, bare)
  await git('-C', bare, 'repack', '-ad', '--quiet')
  await git('-C', bare, 'update-server-info')
  const entries = await readdir(bare, { recursive: true, withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  const contents = files.map(async (file) => {
    const base64 = (await readFile(file)).toString('base64')
    return [`/srv/site/bare.git/${relative(bare, file)}`, { base64 }] as const
  })
  return Object.fromEntries(await Promise.all(contents))
}

/** What is cloned has. */
export async function clone(url: string, to: string, caFile: string): Promise<string> {
  // A variable, because one of the host's own would outdo an option.
  const env = { ...process.env, GIT_SSL_CAINFO: caFile }
  await run('git', ['clone', '--quiet', `${url}/bare.git`, to], { env })
  return await readFile(join(to, 'README'), 'utf8')
}

/** One that trusts this authority besides its own, and keeps all it knows in a directory of the caller's. */
export async function openBrowser(home: string, caFile: string): Promise<BrowserContext> {
  const trusted = join(home, '.pki/nssdb')
  await mkdir(trusted, { recursive: true })
  await run('certutil', ['-d', `sql:${trusted}`, '-N', '--empty-password'])
  await run('certutil', ['-d', `sql:${trusted}`, '-A', '-t', 'C,,', '-n', 'berth', '-i', caFile])
  return await chromium.launchPersistentContext(join(home, 'profile'), {
    ...chromiumOptions,
    env: { ...(process.env as Record<string, string>), HOME: home },
  })
}

/** The hash of what arrives of so many megabytes of servers/web.py. */
export async function download(url: string, megabytes: number, ca: string): Promise<string> {
  const hash = createHash('sha256')
  await new Promise((resolve, reject) => {
    const asked = get(`${url}/large?${megabytes}`, { ca }, (response) => {
      response.on('data', (chunk: Buffer) => hash.update(chunk))
      response.on('end', resolve)
      response.on('error', reject)
    })
    asked.on('error', reject)
  })
  return hash.digest('hex')
}

/** The hash of what servers/web.py sends. */
export function hashOfLarge(megabytes: number): string {
  const hash = createHash('sha256')
  const megabyte = Buffer.alloc(2 ** 20, createHash('sha256').update('berth').digest())
  for (let number = 0; number < megabytes; number++) {
    megabyte.writeUInt32BE(number)
    hash.update(megabyte)
  }
  return hash.digest('hex')
}

/** The most memory that a process takes while something goes on, in bytes, and what it took before. */
export async function memoryDuring(
  pid: number,
  work: () => Promise<unknown>,
): Promise<{ before: number; most: number }> {
  const before = await memoryOf(pid)
  let most = before
  const looking = setInterval(() => {
    void memoryOf(pid).then((now) => {
      most = Math.max(most, now)
    })
  }, 200)
  await work().finally(() => clearInterval(looking))
  return { before, most }
}

async function memoryOf(pid: number): Promise<number> {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) * 1024
}
