// Tools of the conformance suite that ask back: by a result that the client answers with the same call again, as in the revision of July
// 2026, and by a request within the answer, as before.

import type {
  CallToolResult,
  InputRequests,
  InputRequiredResult,
  ServerContext,
} from '@modelcontextprotocol/server'
import type { Sdk } from '../../../src/api/mcp/transport.ts'

type Answer = CallToolResult | InputRequiredResult
export type AskingTool = (sdk: Sdk, context: ServerContext, args: Record<string, unknown>) => Promise<Answer>

const said = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] })

type Properties = Record<string, object>
const form = (message: string, properties: Properties, required = Object.keys(properties)) => ({
  message,
  requestedSchema: { type: 'object' as const, properties, required },
})
const asking = (message: string, properties: Properties) =>
  ({ method: 'elicitation/create', params: form(message, properties) }) as InputRequests[string]
const sampling = (text: string, maxTokens: number) =>
  ({
    method: 'sampling/createMessage',
    params: { messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens },
  }) as InputRequests[string]
const roots = { method: 'roots/list', params: {} } as InputRequests[string]

const name = { name: { type: 'string' } }
export const nameAsked = asking('What is your name?', name)

/** Sealed by the key of a run, so that a client that changes it is found out. */
export const states = (sdk: Sdk) => sdk.createRequestStateCodec<{ step: number }>({ key: 'k'.repeat(32) })

/** Asks for all of these, until each of them has an answer. */
function untilAnswered(
  requests: InputRequests,
  answer: (responses: Record<string, unknown>) => string,
): AskingTool {
  return async (sdk, { mcpReq }) => {
    const responses = mcpReq.inputResponses ?? {}
    const missing = Object.keys(requests).some((key) => sdk.inputResponse(responses, key).kind === 'missing')
    return missing ? sdk.inputRequired({ inputRequests: requests }) : said(answer(responses))
  }
}

/** The same with a state that travels through the client. */
function withState(steps: InputRequests[], answer: string): AskingTool {
  return async (sdk, context) => {
    const done = context.mcpReq.requestState<{ step: number }>()?.step ?? 0
    const next = steps[done]
    if (next === undefined) return said(answer)
    const requestState = await states(sdk).mint({ step: done + 1 }, context)
    return sdk.inputRequired({ inputRequests: next, requestState })
  }
}

const confirm = { confirm: asking('Please confirm', { ok: { type: 'boolean' } }) }

/** In the older revisions: sends a request and waits for its answer, which comes as a message of its own. */
function elicit(properties: Properties | null, told: string): AskingTool {
  return async (_sdk, { mcpReq }, { message }) => {
    const asked = form(
      typeof message === 'string' ? message : 'Please answer',
      properties ?? {
        username: { type: 'string', description: "User's response" },
        email: { type: 'string', description: "User's email address" },
      },
    )
    const { action, content } = await mcpReq.send({ method: 'elicitation/create', params: asked })
    return said(`${told}action=${action}, content=${JSON.stringify(content ?? {})}`)
  }
}

function capabilitiesOf({ envelope = {} }: ServerContext['mcpReq']): object {
  return (envelope as Record<string, object>)['io.modelcontextprotocol/clientCapabilities'] ?? {}
}

const options = ['option1', 'option2', 'option3']
const titled = (prefix: string, words: string[]) =>
  words.map((word, index) => ({ const: `value${index + 1}`, title: `${word} ${prefix}` }))
const three = ['First', 'Second', 'Third']

export const askingTools: Record<string, AskingTool> = {
  test_input_required_result_elicitation: untilAnswered(
    { user_name: nameAsked },
    (responses) => `Hello, ${JSON.stringify(responses['user_name'])}!`,
  ),
  test_input_required_result_sampling: untilAnswered(
    { capital_question: sampling('What is the capital of France?', 100) },
    (responses) => JSON.stringify(responses['capital_question']),
  ),
  test_input_required_result_list_roots: untilAnswered({ client_roots: roots }, (responses) =>
    JSON.stringify(responses['client_roots']),
  ),
  test_input_required_result_request_state: withState([confirm], 'state-ok'),
  test_input_required_result_tampered_state: withState([confirm], 'state-ok'),
  test_input_required_result_multiple_inputs: withState(
    [{ user_name: nameAsked, greeting: sampling('Generate a greeting', 50), client_roots: roots }],
    'All of it has come.',
  ),
  test_input_required_result_multi_round: withState(
    [
      { step1: asking('Step 1: What is your name?', name) },
      { step2: asking('Step 2: What is your favorite color?', { color: { type: 'string' } }) },
    ],
    'Both steps are done.',
  ),
  test_input_required_result_capabilities: async (sdk, { mcpReq }) => {
    const can = capabilitiesOf(mcpReq)
    const inputRequests = {
      ...('elicitation' in can ? { user_name: nameAsked } : {}),
      ...('sampling' in can ? { greeting: sampling('Generate a greeting', 50) } : {}),
    }
    return sdk.inputRequired({ inputRequests })
  },
  test_missing_capability: async (sdk, { mcpReq }) => {
    const can = capabilitiesOf(mcpReq)
    if (!('sampling' in can)) {
      throw new sdk.MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } })
    }
    return said('It can.')
  },
  test_sampling: async (_sdk, { mcpReq }, { prompt }) => {
    const { params } = sampling(String(prompt), 100)
    const { content } = await mcpReq.send({
      method: 'sampling/createMessage',
      params: params as Record<string, unknown>,
    })
    return said(`LLM response: ${JSON.stringify(content)}`)
  },
  test_elicitation: elicit(null, 'User response: '),
  test_elicitation_sep1034_defaults: elicit(
    {
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    },
    'Elicitation completed: ',
  ),
  test_elicitation_sep1330_enums: elicit(
    {
      untitledSingle: { type: 'string', enum: options },
      titledSingle: { type: 'string', oneOf: titled('Option', three) },
      legacyEnum: {
        type: 'string',
        enum: ['opt1', 'opt2', 'opt3'],
        enumNames: ['Option One', 'Option Two', 'Option Three'],
      },
      untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
      titledMulti: { type: 'array', items: { anyOf: titled('Choice', three) } },
    },
    'Elicitation completed: ',
  ),
}
