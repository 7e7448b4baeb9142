// A model with a unit of its own for each question.

import { Berth } from '@berth/sdk'
import { unitSandbox, unitTools } from '@berth/sdk/ai'
import { generateText, isStepCount, type LanguageModel } from 'ai'

export async function ask(model: LanguageModel, prompt: string): Promise<string> {
  await using unit = await new Berth().units.create('berth.local/python:3.11')
  const { text } = await generateText({
    model,
    prompt,
    tools: unitTools(unit),
    experimental_sandbox: await unitSandbox(unit),
    stopWhen: isStepCount(20),
  })
  return text
}
