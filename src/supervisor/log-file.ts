// `<dataDir>/logs/berth.log`: the log of all processes, as JSON lines. Processes write to it directly, so their last
// lines are kept however they end; the supervisor rotates the file.

import { constants } from 'node:fs'
import { copyFile, type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { MINUTE } from '../lib/clock.ts'
import { logPathOf } from '../lib/log.ts'

const LARGEST_BYTES = 16 * 1024 * 1024
const CHECK_EVERY_MS = MINUTE / 2
/** Older files are deleted. */
const KEPT = ['1', '2', '3'] as const

export type LogFile = { descriptor: number; close(): Promise<void> }

export async function openLogFile(dataDir: string): Promise<LogFile> {
  const path = logPathOf(dataDir)
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  // In append mode, so that truncating it under the writers is safe.
  const file = await open(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT, 0o600)
  const rotate = () => rotateWhenLarge(file, path).catch(() => {})
  await rotate()
  const timer = setInterval(() => void rotate(), CHECK_EVERY_MS)
  timer.unref()
  return {
    descriptor: file.fd,
    close: async () => {
      clearInterval(timer)
      await file.close()
    },
  }
}

async function rotateWhenLarge(file: FileHandle, path: string): Promise<void> {
  if ((await file.stat()).size < LARGEST_BYTES) return
  await rm(`${path}.${KEPT.at(-1)}`, { force: true })
  for (let index = KEPT.length - 2; index >= 0; index--) {
    await rename(`${path}.${KEPT[index]}`, `${path}.${KEPT[index + 1]}`).catch(() => {})
  }
  // On a full disk the copy fails; the file is truncated anyway to free its space.
  await copyFile(path, `${path}.${KEPT[0]}`).catch(() => {})
  await file.truncate(0)
}
