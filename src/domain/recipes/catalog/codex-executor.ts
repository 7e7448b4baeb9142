import { defineRecipe } from '../define.ts'
import { CODEX_VERSION } from './codex.ts'
import { listensAt } from './listens-at.ts'
import { workParams, workUnit } from './coding-agent.ts'

/** The protocol has no authentication of its own: who may connect runs commands. */
const PORT = 4512

export const codexExecutor = defineRecipe({
  name: 'codex-executor',
  title: 'Executor for Codex',
  description:
    'A machine on which a Codex elsewhere runs its commands: one on a laptop, or of OpenAI’s Agents API. It has no key of a model. ' +
    'Publish it with a private link alone: who has that runs commands in it.',
  tags: ['agent'],
  params: workParams({ version: CODEX_VERSION, taken: [] }),
  secrets: [],
  units: {
    main: ({ params }) => {
      const unit = workUnit('codex-executor', params)
      return { ...unit, ports: [PORT], healthcheck: { ...unit.healthcheck, cmd: listensAt(PORT) } }
    },
  },
  frontDoor: { unit: 'main', port: PORT },
  outputs: {},
})
