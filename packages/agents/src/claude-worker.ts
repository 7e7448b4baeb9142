// The worker of Claude Managed Agents that runs in the unit of its session, for what only the vendor's own does: memory stores
// and skills. The unit has a placeholder of the item's token, which is good for the calls of this session and item alone.

import { createHash } from 'node:crypto'
import type { VendorSession } from './claude-library.ts'
import type { Claim } from './claim.ts'

const HOST = 'api.anthropic.com'
const TOKEN = 'ANTHROPIC_SESSION_TOKEN'
/** The most paths that a secret may have. */
const MAX_PATHS = 32

/**
 * The vendor's library for Node, which `berth.local/agent` has, or else the one for Python. It ends at TERM once it has written
 * the memory stores back, within thirty seconds. `$1`: after how many milliseconds without work it ends; the rest: directories
 * that a worker which was killed may have left, and that must not be there.
 */
const WORKER = `idle=$1; shift
rm -rf -- "$@"; mkdir -p /workspace && cd / || exit
has_node() { node -e 'require.resolve("@anthropic-ai/sdk")' 2>/dev/null; }
if has_node || { NODE_PATH=$(npm root -g 2>/dev/null) && export NODE_PATH && has_node; }; then
  exec node -e '
const { default: Anthropic } = require("@anthropic-ai/sdk")
const gone = new AbortController()
process.on("SIGTERM", () => gone.abort())
const { work } = new Anthropic({ apiKey: null, authToken: "none" }).beta.environments
work.worker({ workdir: "/workspace", maxIdleMs: Number(process.argv[1]) }).handleItem({ signal: gone.signal }).catch((error) => {
  if (gone.signal.aborted) return
  console.error(String(error))
  process.exitCode = 1
})' "$idle"
fi
if python3 -c 'import anthropic.lib.environments' 2>/dev/null; then
  exec python3 -c '
import asyncio, signal, sys, anthropic
async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asyncio.current_task().cancel)
    work = anthropic.AsyncAnthropic(auth_token="none").beta.environments.work
    await work.worker(workdir="/workspace", max_idle=float(sys.argv[1]) / 1000).handle_item()
try:
    asyncio.run(main())
except asyncio.CancelledError:
    pass
except Exception as error:
    sys.exit(str(error))' "$idle"
fi
echo 'The image has neither Node with @anthropic-ai/sdk nor Python with anthropic: berth.local/agent:1 has.' >&2
exit 127`

type Item = { environmentId: string; workId: string; sessionId: string; token: string | null }

export type Inside = { worker: Claim | null; lacks: string[] }

/** Whether a session needs it, and where it cannot have it why, as a sentence. */
export function insideOf(
  { resources, agent }: VendorSession,
  { environmentId, workId, sessionId, token }: Item,
  { url, idleMs = 60_000 }: { url: string | undefined; idleMs: number | undefined },
): Inside {
  const stores = resources.filter(({ type }) => type === 'memory_store')
  const skills = agent?.skills ?? []
  const needed = [...(stores.length > 0 ? ['memory stores'] : []), ...(skills.length > 0 ? ['skills'] : [])]
  if (needed.length === 0) return { worker: null, lacks: [] }
  const without = (why: string) => ({
    worker: null,
    lacks: [`it works without its ${needed.join(' and ')}: ${why}`],
  })
  const { protocol, hostname, port } = new URL(url ?? `https://${HOST}`)
  if (protocol !== 'https:' || port !== '')
    return without('the vendor is not at an https address on port 443')
  const below = `/v1/environments/${environmentId}/work/${workId}`
  const session = `/v1/sessions/${sessionId}`
  const paths = [
    session,
    `${session}/events`,
    `${session}/events/stream`,
    `${below}/heartbeat`,
    `${below}/stop`,
    ...stores.flatMap(({ memory_store_id: id }) => [
      `/v1/memory_stores/${id}/memories`,
      `/v1/memory_stores/${id}/memories/*`,
    ]),
    ...skills.map(({ skill_id: id }) => `/v1/skills/${id}/versions/*`),
  ]
  if (paths.length > MAX_PATHS) return without(`together they need more than ${MAX_PATHS} paths of its token`)
  const placeholder = `berth_session_${createHash('sha256').update(sessionId).digest('hex').slice(0, 32)}`
  const mounts = stores.flatMap(({ mount_path: path }) =>
    path && /^\/mnt\/memory\/[^/]+$/.test(path) && !/\/\.\.?$/.test(path) ? [path] : [],
  )
  return {
    worker: {
      session: sessionId,
      cmd: ['sh', '-c', WORKER, 'sh', String(idleMs), ...mounts],
      env: {
        ANTHROPIC_ENVIRONMENT_ID: environmentId,
        ANTHROPIC_SESSION_ID: sessionId,
        ANTHROPIC_WORK_ID: workId,
        ANTHROPIC_WORK_SECRET: Buffer.from(JSON.stringify({ sessions_token: placeholder })).toString(
          'base64url',
        ),
        ...(url !== undefined && { ANTHROPIC_BASE_URL: url }),
      },
      token,
      brokered: {
        variable: TOKEN,
        hosts: [hostname],
        methods: ['GET', 'POST', 'DELETE'],
        paths,
        placeholder,
      },
    },
    lacks: [],
  }
}
