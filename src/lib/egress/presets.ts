// Presets: the names of well-known services, so that rules can say `preset:npm`. A preset includes the redirect
// targets and content networks that an ordinary client of the service needs.

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
