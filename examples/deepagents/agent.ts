// A deep agent with a unit of its own for each question.

import { Berth } from '@berth/sdk'
import { UnitBackend } from '@berth/sdk/deepagents'
import { createDeepAgent, type CreateDeepAgentParams } from 'deepagents'

export async function ask(
  model: NonNullable<CreateDeepAgentParams['model']>,
  prompt: string,
): Promise<string> {
  await using unit = await new Berth().units.create('berth.local/python:3.11')
  const agent = createDeepAgent({ model, backend: new UnitBackend(unit) })
  const { messages } = await agent.invoke({ messages: [{ role: 'user', content: prompt }] })
  return messages.at(-1)?.text ?? ''
}
