// `berth code`: runs code in a unit of berth.local/code, and prints what it prints and its value.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CodeOutcome, type RunCodeOptions, type StreamEvent } from '@berth/sdk'
import { milliseconds, UsageError } from '../args.ts'
import { type Context, unitOf } from '../context.ts'
import { exitCodes, Failure } from '../failure.ts'
import { readInput } from '../input.ts'
import { note, printJson, write } from '../output.ts'

const MAX_CODE = 1_048_576
const languages = ['python', 'javascript', 'typescript', 'bash', 'r'] as const

export async function code(context: Context): Promise<number> {
  const { args, signal, isJson } = context
  const [word = '', given] = args.args
  const [language, timeout, inContext] = [args.text('language'), args.text('timeout'), args.text('context')]
  const known = languages.find((each) => each === language)
  if (language !== undefined && known === undefined)
    throw new UsageError(`--language must be one of ${languages.join(', ')}.`)
  const options: RunCodeOptions = {
    signal,
    ...(known && { language: known }),
    ...(inContext !== undefined && { context: inContext }),
    ...(timeout !== undefined && { timeoutMs: milliseconds(timeout) }),
  }
  const unit = await unitOf(context, word)
  const source = given ?? new TextDecoder().decode(await readInput(MAX_CODE))
  if (isJson) {
    const { info } = await unit.code.run(source, options)
    await printJson(info)
    return exitCodeOf(info)
  }
  let [plots, ended] = [0, { timedOut: false, error: null as unknown }]
  for await (const event of unit.code.stream(source, options)) {
    if (event.event === 'result') plots = await show(event, args.text('save') ?? null, plots)
    else if (event.event === 'exception') {
      const { name, value, traceback } = event.data as { name: string; value: string; traceback: string[] }
      note(traceback.length > 0 ? traceback.join('\n') : `${name}: ${value}`)
      ended = { ...ended, error: name }
    } else if (event.event === 'end') ended = { ...ended, ...(event.data as { timedOut: boolean }) }
    else if (event.event === 'stdout' || event.event === 'stderr')
      await write((event.data as { data: string }).data, process[event.event])
  }
  return exitCodeOf(ended)
}

function exitCodeOf({ timedOut, error }: { timedOut: boolean; error: unknown }): number {
  if (timedOut) return exitCodes.timedOut
  return error === null ? 0 : exitCodes.failed
}

/** A value as text; a picture as a file, where a folder is named. Returns how many pictures there were so far. */
async function show({ data }: StreamEvent, folder: string | null, plots: number): Promise<number> {
  const value = data as CodeOutcome['results'][number]
  const { text, images } = new CodeOutcome({ results: [{ ...value, main: true }] } as CodeOutcome['info'])
  const [image] = images
  if (image === undefined || folder === null) {
    if (text !== null) await write(`${text}\n`)
    return plots
  }
  const path = join(folder, `plot-${plots + 1}.${image.mime === 'image/png' ? 'png' : 'jpg'}`)
  await writeFile(path, image.bytes).catch((error: unknown) => {
    throw new Failure(`The plot could not be written: ${(error as Error).message}`)
  })
  await write(`${path}\n`)
  return plots + 1
}
