// The content of a file of a unit, as JSON and as its bytes.

import {
  decodeFile,
  FILE_MODE_HEADER,
  fileBytesQuerySchema,
  fileQuerySchema,
  fileReadSchema,
  fileWriteSchema,
  fileWrittenSchema,
  ownerOf,
} from '../../contract/files.ts'
import { pathText } from '../../contract/file-paths.ts'
import { readFile, writeFile } from '../../domain/units/files.ts'
import { fileBody, fileTooLarge, jsonBody } from '../http/body.ts'
import { defineRoute } from '../route.ts'
import { aboutUnit } from './about-unit.ts'

export const writeFileJson = defineRoute({
  ...aboutUnit,
  method: 'POST',
  path: '/v1/units/{id}/files',
  summary: 'Write a file, from base64',
  action: 'unit.file.write',
  kind: 'change',
  body: jsonBody(fileWriteSchema, { tooLarge: fileTooLarge }),
  response: fileWrittenSchema,
  errors: [402, 404, 409, 415, 502],
  record: ({ body: { contentBase64, ...named } }) => ({ ...named, bytes: decodeFile(contentBase64).length }),
  handle: (app, { params, body }, { caller }) =>
    writeFile(app, caller, params.id, pathText(body), decodeFile(body.contentBase64), ownerOf(body)),
})

export const writeFileBytes = defineRoute({
  ...aboutUnit,
  method: 'PUT',
  path: '/v1/units/{id}/files',
  summary: 'Write a file, from the bytes of the body',
  action: 'unit.file.write',
  kind: 'change',
  query: fileBytesQuerySchema,
  body: fileBody,
  response: fileWrittenSchema,
  errors: [402, 404, 409, 415, 502],
  record: ({ query, body }) => ({ ...query, bytes: body.length }),
  handle: (app, { params, query, body }, { caller }) =>
    writeFile(app, caller, params.id, pathText(query), body, ownerOf(query)),
})

export const readFileRoute = defineRoute({
  ...aboutUnit,
  method: 'GET',
  path: '/v1/units/{id}/files',
  summary: 'Read a file',
  action: 'unit.file.read',
  kind: 'read',
  query: fileQuerySchema,
  response: fileReadSchema,
  headers: { [FILE_MODE_HEADER]: 'The mode of the file, in four octal digits.' },
  errors: [402, 404, 409, 502],
  record: ({ query }) => query,
  handle: async (app, { params, query }, { caller, addHeader }) => {
    const { mode, ...file } = await readFile(app, caller, params.id, pathText(query), query.user)
    addHeader(FILE_MODE_HEADER, mode)
    return file
  },
})
