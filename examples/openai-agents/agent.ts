// An agent whose shell and files are those of a unit of its own.

import { UnitSandboxClient } from '@berth/sdk/openai-agents'
import { type Model, run } from '@openai/agents'
import { filesystem, SandboxAgent, shell } from '@openai/agents/sandbox'

export async function ask(model: string | Model, prompt: string): Promise<string> {
  const agent = new SandboxAgent({ name: 'coder', model, capabilities: [shell(), filesystem()] })
  const client = new UnitSandboxClient({ image: 'berth.local/python:3.11' })
  const { finalOutput = '' } = await run(agent, prompt, { sandbox: { client } })
  return String(finalOutput)
}
