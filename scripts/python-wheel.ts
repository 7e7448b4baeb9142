// Writes the wheel of the Python library, reproducibly and without Python: a ZIP file of its sources with the metadata
// of pyproject.toml (PEP 427, core metadata 2.4). A test compares it with the one of hatchling, the build backend that
// `pip install` of the folder takes.

import { createHash } from 'node:crypto'
import { glob, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32, deflateRawSync } from 'node:zlib'
import { parse } from 'smol-toml'

type Project = {
  name: string
  version: string
  description: string
  license: string
  authors: { name: string }[]
  'requires-python': string
  dependencies: string[]
  classifiers: string[]
  'optional-dependencies': Record<string, string[]>
  'entry-points'?: Record<string, Record<string, string>>
}

/** Returns the path of the file. `source`: the folder of pyproject.toml. */
export async function writeWheel(source: string, directory: string): Promise<string> {
  const { project } = parse(await readFile(join(source, 'pyproject.toml'), 'utf8')) as unknown as {
    project: Project
  }
  const distribution = `${project.name.replaceAll(/[-_.]+/g, '_')}-${project.version}`
  const about = `${distribution}.dist-info`
  const files: [name: string, content: Buffer][] = []
  for await (const path of glob('berth/**/*.{py,typed}', { cwd: join(source, 'src') }))
    files.push([path, await readFile(join(source, 'src', path))])
  files.sort(([one], [other]) => (one < other ? -1 : 1))
  files.push(
    [
      `${about}/METADATA`,
      Buffer.from(metadataOf(project, await readFile(join(source, 'README.md'), 'utf8'))),
    ],
    [
      `${about}/WHEEL`,
      Buffer.from('Wheel-Version: 1.0\nGenerator: berth\nRoot-Is-Purelib: true\nTag: py3-none-any\n'),
    ],
    ...entryPointsOf(project).map((text): [string, Buffer] => [
      `${about}/entry_points.txt`,
      Buffer.from(text),
    ]),
    [`${about}/licenses/LICENSE`, await readFile(join(source, 'LICENSE'))],
  )
  const record = files.map(([name, content]) => `${name},sha256=${digestOf(content)},${content.length}\n`)
  files.push([`${about}/RECORD`, Buffer.from(`${record.join('')}${about}/RECORD,,\n`)])
  const path = join(directory, `${distribution}-py3-none-any.whl`)
  await mkdir(directory, { recursive: true })
  await writeFile(path, zipOf(files))
  return path
}

function metadataOf(project: Project, readme: string): string {
  const optional = Object.entries(project['optional-dependencies']).flatMap(([extra, needed]) => [
    `Provides-Extra: ${extra}`,
    ...needed.map((each) => `Requires-Dist: ${each}; extra == '${extra}'`),
  ])
  return [
    'Metadata-Version: 2.4',
    `Name: ${project.name}`,
    `Version: ${project.version}`,
    `Summary: ${project.description}`,
    ...project.authors.map(({ name }) => `Author: ${name}`),
    `License-Expression: ${project.license}`,
    'License-File: LICENSE',
    ...project.classifiers.map((each) => `Classifier: ${each}`),
    `Requires-Python: ${project['requires-python']}`,
    ...project.dependencies.map((each) => `Requires-Dist: ${each}`),
    ...optional,
    'Description-Content-Type: text/markdown',
    '',
    readme,
  ].join('\n')
}

/** No file where there are none. */
function entryPointsOf(project: Project): string[] {
  const groups = Object.entries(project['entry-points'] ?? {}).map(([group, points]) =>
    [`[${group}]`, ...Object.entries(points).map(([name, object]) => `${name} = ${object}`), ''].join('\n'),
  )
  return groups.length > 0 ? [groups.join('\n')] : []
}

const digestOf = (content: Buffer) => createHash('sha256').update(content).digest('base64url')

/** 1 January 1980, as the format counts: the first day it knows. */
const FIRST_DAY = 0x21
const DEFLATED = 8
const VERSION = 20
/** Made on Unix, so that the mode below is read. */
const UNIX = 3 << 8
const FILE_MODE = 0o100644 * 0x10000

/** A ZIP file of a few small files, whose names are ASCII. */
function zipOf(files: readonly [name: string, content: Buffer][]): Buffer {
  const pieces: Buffer[] = []
  const directory: Buffer[] = []
  let at = 0
  for (const [name, content] of files) {
    const [label, packed] = [Buffer.from(name), deflateRawSync(content, { level: 9 })]
    // What a file's own head and its entry in the directory have in common.
    const common = Buffer.alloc(26)
    common.writeUInt16LE(VERSION, 0)
    common.writeUInt16LE(DEFLATED, 4)
    common.writeUInt16LE(FIRST_DAY, 8)
    common.writeUInt32LE(crc32(content), 10)
    common.writeUInt32LE(packed.length, 14)
    common.writeUInt32LE(content.length, 18)
    common.writeUInt16LE(label.length, 22)
    const head = Buffer.concat([Buffer.from('PK\x03\x04'), common, label])
    const entry = Buffer.alloc(2)
    entry.writeUInt16LE(UNIX + VERSION, 0)
    const rest = Buffer.alloc(14)
    rest.writeUInt32LE(FILE_MODE, 6)
    rest.writeUInt32LE(at, 10)
    directory.push(Buffer.from('PK\x01\x02'), entry, common, rest, label)
    pieces.push(head, packed)
    at += head.length + packed.length
  }
  const listed = Buffer.concat(directory)
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06', 'latin1')
  end.writeUInt16LE(files.length, 8)
  end.writeUInt16LE(files.length, 10)
  end.writeUInt32LE(listed.length, 12)
  end.writeUInt32LE(at, 16)
  return Buffer.concat([...pieces, listed, end])
}
