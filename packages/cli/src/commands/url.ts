// `berth url` and `berth open`.

import { wholeNumber } from '../args.ts'
import { type Context, unitOf } from '../context.ts'
import { Failure } from '../failure.ts'
import { openUrl } from '../open-url.ts'
import { print, printJson } from '../output.ts'

export async function url(context: Context): Promise<void> {
  const address = await urlOf(context)
  await (context.isJson ? printJson({ url: address }) : print(address))
}

export async function open(context: Context): Promise<void> {
  const address = await urlOf(context)
  // Also where a browser opens: it may be on another screen, or none.
  await (context.isJson ? printJson({ url: address }) : print(address))
  await openUrl(address)
}

async function urlOf(context: Context): Promise<string> {
  const { args, signal } = context
  const [word = '', port] = args.args
  const unit = await unitOf(context, word)
  const [mode, rotate] = [args.flag('public') ? ('public' as const) : undefined, args.flag('rotate')]
  const published = unit.info.endpoints.find(({ protocol }) => protocol === 'http')
  const wanted =
    port === undefined
      ? (published?.port ?? unit.info.expose ?? onlyOne(unit.info.ports))
      : wholeNumber(port, 'port')
  if (wanted === null)
    throw new Failure(`Unit "${unit.name}" has no URL, and it is not said which port to publish.`, {
      hint: `berth url ${word} ${unit.info.ports[0] ?? 8080}`,
    })
  return await unit.url(wanted, { mode, rotate, signal })
}

const onlyOne = (ports: number[]): number | null => (ports.length === 1 ? (ports[0] ?? null) : null)
