// A short form in which the messages of a service are described, for the protobuf library. Fields that exclude each other
// on the wire are plain fields here: the bytes and the JSON are the same.

import { create, createFileRegistry, type DescFile, type DescService } from '@bufbuild/protobuf'
import {
  type FieldDescriptorProto,
  FieldDescriptorProto_Label,
  FieldDescriptorProto_Type,
  FieldDescriptorProtoSchema,
  FileDescriptorProtoSchema,
  file_google_protobuf_timestamp,
} from '@bufbuild/protobuf/wkt'

const { STRING, UINT32, SINT32, INT64, BOOL, BYTES, MESSAGE, ENUM } = FieldDescriptorProto_Type

type Field = {
  number: number
  type: FieldDescriptorProto_Type
  typeName?: string
  isRepeated?: true
  isTextMap?: true
}

const scalar =
  (type: FieldDescriptorProto_Type) =>
  (number: number): Field => ({ number, type })
export const string = scalar(STRING)
export const uint32 = scalar(UINT32)
export const sint32 = scalar(SINT32)
export const int64 = scalar(INT64)
export const bool = scalar(BOOL)
export const bytes = scalar(BYTES)
export const message = (typeName: string, number: number): Field => ({ number, type: MESSAGE, typeName })
export const enumeration = (typeName: string, number: number): Field => ({ number, type: ENUM, typeName })
export const list = (field: Field): Field => ({ ...field, isRepeated: true })
/** A map from string to string. */
export const textMap = (number: number): Field => ({ number, type: MESSAGE, isTextMap: true })

export type Described = {
  package: string
  messages: Record<string, Record<string, Field>>
  enums: Record<string, Record<string, number>>
  service: string
  methods: Record<string, { streams?: 'answers' | 'requests' }>
}

const TIMESTAMP = 'google/protobuf/timestamp.proto'

/** Each method takes `<name>Request` and answers `<name>Response`. */
export function serviceOf(described: Described): DescService {
  const prefix = `.${described.package}.`
  const file = create(FileDescriptorProtoSchema, {
    name: `${described.package}.proto`,
    package: described.package,
    syntax: 'proto3',
    dependency: [TIMESTAMP],
    messageType: Object.entries(described.messages).map(([name, fields]) => ({
      name,
      field: Object.entries(fields).map(([field, of]) => toField(field, of, `${prefix}${name}.`, prefix)),
      nestedType: Object.entries(fields).flatMap(([field, { isTextMap }]) =>
        isTextMap ? [entryOf(field)] : [],
      ),
    })),
    enumType: Object.entries(described.enums).map(([name, values]) => ({
      name,
      value: Object.entries(values).map(([value, number]) => ({ name: value, number })),
    })),
    service: [
      {
        name: described.service,
        method: Object.entries(described.methods).map(([name, { streams }]) => ({
          name,
          inputType: `${prefix}${name}Request`,
          outputType: `${prefix}${name}Response`,
          serverStreaming: streams === 'answers',
          clientStreaming: streams === 'requests',
        })),
      },
    ],
  })
  const registry = createFileRegistry(file, (name): DescFile | undefined =>
    name === TIMESTAMP ? file_google_protobuf_timestamp : undefined,
  )
  const service = registry.getService(`${described.package}.${described.service}`)
  if (!service) throw new TypeError(`the service ${described.service} is not described`)
  return service
}

function toField(name: string, field: Field, within: string, prefix: string): FieldDescriptorProto {
  const { number, type, typeName, isRepeated, isTextMap } = field
  const label =
    isRepeated || isTextMap ? FieldDescriptorProto_Label.REPEATED : FieldDescriptorProto_Label.OPTIONAL
  const named = isTextMap ? `${within}${entryName(name)}` : qualified(typeName, prefix)
  const jsonName = name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
  return create(FieldDescriptorProtoSchema, {
    name,
    jsonName,
    number,
    type,
    label,
    ...(named && { typeName: named }),
  })
}

/** A name with a dot at its beginning is of another package. */
function qualified(typeName: string | undefined, prefix: string): string | undefined {
  return typeName === undefined || typeName.startsWith('.') ? typeName : `${prefix}${typeName}`
}

/** On the wire a map is a list of entries. */
function entryOf(field: string) {
  return {
    name: entryName(field),
    options: { mapEntry: true },
    field: [
      create(FieldDescriptorProtoSchema, { name: 'key', jsonName: 'key', number: 1, type: STRING, label: 1 }),
      create(FieldDescriptorProtoSchema, {
        name: 'value',
        jsonName: 'value',
        number: 2,
        type: STRING,
        label: 1,
      }),
    ],
  }
}

function entryName(field: string): string {
  const words = field.split('_').map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  return `${words.join('')}Entry`
}
