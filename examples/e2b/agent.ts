// An agent with the E2B SDK: a model that runs commands in a sandbox until it knows the answer. Nothing in it is for Berth:
// E2B_API_URL, E2B_SANDBOX_URL and E2B_API_KEY say where the sandbox is (docs/guides/e2b.md).

import { CommandExitError, Sandbox } from 'e2b'

type ToolCall = { id: string; function: { name: string; arguments: string } }
type Message = { role: string; content: string | null; tool_calls?: ToolCall[]; tool_call_id?: string }

/** A server that speaks OpenAI's chat completions. */
export type Model = { baseUrl: string; apiKey: string; name: string }

const MAX_TURNS = 20

const tools = [
  {
    type: 'function',
    function: {
      name: 'run',
      description: 'Runs a shell command in a Linux sandbox and returns what it prints.',
      parameters: { type: 'object', properties: { command: { type: 'string' } }, required: ['command'] },
    },
  },
]

/** The model's answer, once it asks for no more commands. */
export async function solve(task: string, model: Model): Promise<string> {
  const sandbox = await Sandbox.create()
  const messages: Message[] = [
    { role: 'system', content: 'Solve the task with commands in your sandbox. Answer in one sentence.' },
    { role: 'user', content: task },
  ]
  try {
    for (let turn = 0; turn < MAX_TURNS; turn += 1) {
      const said = await ask(model, messages)
      messages.push(said)
      if (said.tool_calls === undefined || said.tool_calls.length === 0) return said.content ?? ''
      for (const { id, function: called } of said.tool_calls) {
        const { command } = JSON.parse(called.arguments) as { command: string }
        messages.push({ role: 'tool', tool_call_id: id, content: await run(sandbox, command) })
      }
    }
    throw new Error(`No answer after ${MAX_TURNS} turns.`)
  } finally {
    await sandbox.kill()
  }
}

async function ask({ baseUrl, apiKey, name }: Model, messages: Message[]): Promise<Message> {
  const answer = await fetch(`${baseUrl}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: name, messages, tools }),
  })
  if (!answer.ok) throw new Error(`The model answered ${answer.status}: ${await answer.text()}`)
  const { choices } = (await answer.json()) as { choices: [{ message: Message }] }
  return choices[0].message
}

/** A command that fails is no error of the agent: the model sees what it printed. */
async function run(sandbox: Sandbox, command: string): Promise<string> {
  try {
    const { stdout, stderr } = await sandbox.commands.run(command, { timeoutMs: 120_000 })
    return stdout + stderr
  } catch (error) {
    if (!(error instanceof CommandExitError)) throw error
    return `exit code ${error.exitCode}\n${error.stdout}${error.stderr}`
  }
}
