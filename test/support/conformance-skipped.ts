// Scenarios of the official conformance suite that a revision requires of a server and that Berth's own tools are not
// measured by, with the reason. The endpoint itself passes all of them with the suite's example server.

const exampleTool = 'calls a tool of the example server, which Berth has not'
const resources = 'Berth has no resources: a unit is reached by tools'
const prompts = 'Berth has no prompts'
const asking = 'calls an example tool that asks its caller for more; no tool of Berth does'

export const skippedScenarios: Record<string, string> = {
  'server-stateless': exampleTool,
  caching: 'expects the resources and prompts of the example server too',
  'completion-complete': 'completes arguments of prompts and resources, which Berth has not',
  'logging-set-level': 'Berth sends no log messages: read_logs and read_audit have them',
  'tools-call-simple-text': exampleTool,
  'tools-call-image': exampleTool,
  'tools-call-audio': exampleTool,
  'tools-call-embedded-resource': exampleTool,
  'tools-call-mixed-content': exampleTool,
  'tools-call-with-logging': exampleTool,
  'tools-call-error': exampleTool,
  'tools-call-with-progress': exampleTool,
  'tools-call-sampling': asking,
  'tools-call-elicitation': asking,
  'elicitation-sep1034-defaults': asking,
  'elicitation-sep1330-enums': asking,
  'server-sse-multiple-streams': exampleTool,
  'resources-list': resources,
  'resources-read-text': resources,
  'resources-read-binary': resources,
  'resources-templates-read': resources,
  'resources-subscribe': resources,
  'resources-unsubscribe': resources,
  'sep-2164-resource-not-found': resources,
  'prompts-list': prompts,
  'prompts-get-simple': prompts,
  'prompts-get-with-args': prompts,
  'prompts-get-embedded-resource': prompts,
  'prompts-get-with-image': prompts,
  'input-required-result-basic-elicitation': asking,
  'input-required-result-basic-sampling': asking,
  'input-required-result-basic-list-roots': asking,
  'input-required-result-request-state': asking,
  'input-required-result-multiple-input-requests': asking,
  'input-required-result-multi-round': asking,
  'input-required-result-missing-input-response': asking,
  'input-required-result-non-tool-request': asking,
  'input-required-result-result-type': asking,
  'input-required-result-tampered-state': asking,
  'input-required-result-capability-check': asking,
  'input-required-result-ignore-extra-params': asking,
  'input-required-result-validate-input': asking,
}
