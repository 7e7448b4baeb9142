// An agent of Mastra whose workspace is a unit of its own.

import { UnitFilesystem, UnitSandbox } from '@berth/sdk/mastra'
import { Agent } from '@mastra/core/agent'
import { Workspace } from '@mastra/core/workspace'

type Model = ConstructorParameters<typeof Agent>[0]['model']

export async function ask(model: Model, prompt: string): Promise<string> {
  const sandbox = new UnitSandbox({ workingDirectory: '/work' })
  const workspace = new Workspace({ sandbox, filesystem: new UnitFilesystem(sandbox, { root: '/work' }) })
  try {
    const agent = new Agent({
      id: 'coder',
      name: 'coder',
      instructions: 'You write programs.',
      model,
      workspace,
    })
    return (await agent.generate(prompt)).text
  } finally {
    await workspace.destroy()
  }
}
