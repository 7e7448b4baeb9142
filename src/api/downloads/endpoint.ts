// GET /install and /packages/…: the CLI, the SDKs and a script that installs the CLI, all of this Berth's own version.
// Public, without credentials and without audit rows, like the documentation. No part of a request reaches the disk or
// the script.

import { createHash } from 'node:crypto'
import { type FileHandle, readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import type { App } from '../../app.ts'
import { AppError, unavailable } from '../../contract/errors.ts'
import { createConcurrencyLimit } from '../../lib/concurrency/concurrency-limit.ts'
import { SECOND } from '../../lib/clock.ts'
import { logError, toAppError } from '../http/errors.ts'
import { send, sendError } from '../http/response.ts'
import { type PackageFile, type Packages, openPackages } from './packages.ts'
import { answerIndex } from './simple-index.ts'

export const downloadMethods = ['GET', 'HEAD'] as const
export const downloadPaths = ['/install', '/packages', '/packages/*'] as const

type Exchange = { id: string; request: IncomingMessage; response: ServerResponse; peer: string }

/** Downloads in progress: in all, and of one client. */
const AT_ONCE = 64
const OF_A_CLIENT = 8

/** A client that reads nothing for this long is disconnected. */
const STALLED_MS = 30 * SECOND

/** Asked for again each time, and not sent again where it is the same. */
const cached = { 'cache-control': 'no-cache', 'content-security-policy': "default-src 'none'" }

export function createDownloads(app: App, open: () => Promise<Packages | null> = openPackages) {
  const atOnce = createConcurrencyLimit(AT_ONCE, OF_A_CLIENT)
  let opening: Promise<Packages | null> | null = null
  const packagesNow = async (): Promise<Packages> => {
    opening ??= open()
    const packages = await opening.catch((error: unknown) => {
      opening = null
      throw error
    })
    if (packages !== null) return packages
    // They may be built by the next time.
    opening = null
    throw new AppError(
      'not_found',
      404,
      'The packages of this Berth are not built: its operator runs npm run build:packages.',
    )
  }

  async function answer({ request, response, peer }: Exchange): Promise<void> {
    const { pathname } = new URL(request.url ?? '', 'http://downloads.invalid')
    const packages = await packagesNow()
    if (pathname === '/install')
      return sendText(request, response, 'text/plain', await installScript(packages, app.config.publicUrl))
    const name = pathname.replace(/^\/packages\/?/, '')
    if (name === '' || name === 'SHA256SUMS')
      return sendText(request, response, 'text/plain', sumsOf(packages))
    const [, indexed] = /^simple(?:\/(.*))?$/.exec(name) ?? []
    if (indexed !== undefined) return sendIndex(packages, indexed, request, response)
    const file = packages.files.get(name)
    if (file === undefined) throw new AppError('not_found', 404, `There is no package ${name.slice(0, 100)}.`)
    if (!atOnce.tryAcquire(peer)) throw unavailable('Too many downloads are in progress.', 5)
    try {
      await sendFile(file, request, response)
    } finally {
      atOnce.release(peer)
    }
  }

  return {
    serve: async (exchange: Exchange): Promise<void> => {
      try {
        await answer(exchange)
      } catch (error) {
        logError(app.log, error, exchange.id)
        sendError(exchange.response, toAppError(error), exchange.id)
      }
    },
    /** Closes the files; called once, with the server. */
    close: async (): Promise<void> => {
      const packages = await opening?.catch(() => null)
      for (const { handle } of packages?.files.values() ?? []) await handle.close()
    },
  }
}

async function installScript({ version, executable, cli }: Packages, publicUrl: string): Promise<string> {
  const script = await readFile(new URL('install.sh', import.meta.url), 'utf8')
  const [, system] = /^berth-(.*)\.gz$/.exec(executable?.name ?? '') ?? []
  const values: Record<string, string> = {
    URL: publicUrl.replaceAll("'", '%27'),
    VERSION: version,
    PROGRAMS: executable === null || system === undefined ? '' : `${system} ${executable.sha256}`,
    PACKAGE: cli.sha256,
  }
  return script.replaceAll(/@([A-Z]+)@/g, (_, name: string) => values[name] ?? '')
}

/** As `sha256sum --check` reads them. */
function sumsOf({ files }: Packages): string {
  return [...files.values()].map(({ name, sha256 }) => `${sha256}  ${name}\n`).join('')
}

function sendIndex(
  packages: Packages,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const found = answerIndex(packages, path, String(request.headers.accept ?? ''))
  if (found.kind === 'missing') throw new AppError('not_found', 404, 'This is no name of a Python package.')
  if (found.kind === 'elsewhere') return send(response, 302, '', { ...cached, location: found.location })
  send(response, 200, found.body, { ...cached, 'content-type': found.contentType, vary: 'accept' })
}

function sendText(request: IncomingMessage, response: ServerResponse, type: string, text: string): void {
  const etag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`
  const isKnown = request.headers['if-none-match'] === etag
  const headers = { ...cached, etag, 'content-type': `${type}; charset=utf-8` }
  send(response, isKnown ? 304 : 200, isKnown ? '' : text, headers)
}

const types: Record<string, string> = {
  tgz: 'application/gzip',
  gz: 'application/gzip',
  whl: 'application/zip',
}

async function sendFile(
  { name, bytes, sha256, handle }: PackageFile,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const etag = `"${sha256.slice(0, 22)}"`
  if (request.headers['if-none-match'] === etag) return send(response, 304, '', { ...cached, etag })
  response.writeHead(200, {
    ...cached,
    etag,
    'content-type': types[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
    'content-length': bytes,
  })
  if (request.method === 'HEAD') return void response.end()
  response.socket?.setTimeout(STALLED_MS)
  // A client that leaves is no fault.
  await pipeline(contentOf(handle, bytes), response).catch(() => response.destroy())
}

const PIECE_BYTES = 256 * 1024

/** Reads at positions of its own, so that several clients read one open file. */
async function* contentOf(handle: FileHandle, bytes: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes; ) {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(PIECE_BYTES), 0, PIECE_BYTES, at)
    if (bytesRead === 0) throw new Error('A package is shorter than it was.')
    yield buffer.subarray(0, bytesRead)
    at += bytesRead
  }
}
