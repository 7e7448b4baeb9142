// What the conformance suite asks its server to hold: texts, a picture, a sound, resources and prompts.

/** A picture of one pixel. */
export const png =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

/** A sound without samples. */
const wav = Buffer.from(
  'RIFF$\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0@\x1f\0\0@\x1f\0\0\x01\0\x08\0data\0\0\0\0',
  'latin1',
)

const text = (value: string) => ({ type: 'text' as const, text: value })
const image = { type: 'image' as const, data: png, mimeType: 'image/png' }
const embedded = (uri: string, mimeType: string, value: string) => ({
  type: 'resource' as const,
  resource: { uri, mimeType, text: value },
})

/** Tools that answer the same at once. */
export const plainTools = {
  test_simple_text: [text('This is a simple text response for testing.')],
  test_image_content: [image],
  test_audio_content: [{ type: 'audio' as const, data: wav.toString('base64'), mimeType: 'audio/wav' }],
  test_embedded_resource: [
    embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.'),
  ],
  test_multiple_content_types: [
    text('Multiple content types test:'),
    image,
    embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
  ],
  test_streaming_elicitation: [text('nothing was asked')],
}

export const resources = [
  { uri: 'test://static-text', name: 'text', description: 'A text.', mimeType: 'text/plain' },
  { uri: 'test://static-binary', name: 'binary', description: 'A picture.', mimeType: 'image/png' },
  { uri: 'test://watched-resource', name: 'watched', description: 'A text.', mimeType: 'text/plain' },
]

export const resourceTemplates = [
  {
    uriTemplate: 'test://template/{id}/data',
    name: 'template',
    description: 'Data by id.',
    mimeType: 'application/json',
  },
]

type Contents = { uri: string; mimeType: string } & ({ text: string } | { blob: string })

/** Null for an address that names nothing. */
export function readResource(uri: string): Contents | null {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
  if (id !== undefined) {
    const data = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` })
    return { uri, mimeType: 'application/json', text: data }
  }
  if (uri === 'test://static-binary') return { uri, mimeType: 'image/png', blob: png }
  if (!resources.some((resource) => resource.uri === uri)) return null
  return { uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }
}

const argument = (name: string) => ({ name, description: name, required: true })

export const prompts = [
  { name: 'test_simple_prompt', description: 'A prompt.' },
  {
    name: 'test_prompt_with_arguments',
    description: 'A prompt.',
    arguments: [argument('arg1'), argument('arg2')],
  },
  {
    name: 'test_prompt_with_embedded_resource',
    description: 'A prompt.',
    arguments: [argument('resourceUri')],
  },
  { name: 'test_prompt_with_image', description: 'A prompt.' },
  { name: 'test_input_required_result_prompt', description: 'A prompt that asks back.' },
]

/** The messages of those that ask nothing; null for an unknown one. */
export function getPrompt(name: string, args: Record<string, string>) {
  const said = (...contents: (ReturnType<typeof text> | typeof image | ReturnType<typeof embedded>)[]) => ({
    messages: contents.map((content) => ({ role: 'user' as const, content })),
  })
  switch (name) {
    case 'test_simple_prompt':
      return said(text('This is a simple prompt for testing.'))
    case 'test_prompt_with_arguments':
      return said(text(`Prompt with arguments: arg1='${args['arg1']}', arg2='${args['arg2']}'`))
    case 'test_prompt_with_embedded_resource':
      return said(
        embedded(args['resourceUri'] ?? '', 'text/plain', 'Embedded resource content for testing.'),
        text('Please process the embedded resource above.'),
      )
    case 'test_prompt_with_image':
      return said(image, text('Please analyze the image above.'))
    default:
      return null
  }
}
