// Names under which well-known services are reached, so that a list of rules can say `preset:npm`. Redirects and
// content networks are part of a service: what an ordinary client of it is sent to is here too.

export const egressPresets = {
  npm: ['registry.npmjs.org'],
  pypi: ['pypi.org', 'files.pythonhosted.org'],
  debian: ['deb.debian.org', 'security.debian.org', 'ftp.debian.org'],
  github: ['github.com', 'api.github.com', 'codeload.github.com', '*.githubusercontent.com', 'github.com:22'],
  anthropic: ['api.anthropic.com'],
  openai: ['api.openai.com'],
  gemini: ['generativelanguage.googleapis.com'],
  mistral: ['api.mistral.ai'],
} as const satisfies Record<string, readonly string[]>

export type EgressPreset = keyof typeof egressPresets

export function isEgressPreset(name: string): name is EgressPreset {
  return Object.hasOwn(egressPresets, name)
}
