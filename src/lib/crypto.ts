// Encryption at rest with AES-256-GCM. Every sealed value is bound to a context (team, owner, name), so that a value
// moved to another row, unit or team cannot be opened. A key can itself be sealed by another key.
//
// A sealed value is: format (1 byte), nonce (12), tag (16), ciphertext.

import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import { link, mkdir, open, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { readBytesIfThere } from './read-if-there.ts'

const FORMAT = 1
const NONCE_BYTES = 12
const TAG_BYTES = 16
const KEY_BYTES = 32

/** A key that cannot be printed by accident: in a log line or in JSON it shows as `[redacted]`. */
export class SecretKey {
  readonly #bytes: Buffer

  constructor(bytes: Buffer) {
    if (bytes.length !== KEY_BYTES) throw new Error(`a secret key has ${KEY_BYTES} bytes`)
    this.#bytes = bytes
  }

  seal(plaintext: Buffer, context: readonly string[]): Buffer {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#bytes, nonce).setAAD(encodeContext(context))
    const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final()])
    return Buffer.concat([Buffer.from([FORMAT]), nonce, cipher.getAuthTag(), ciphertext])
  }

  /** Throws if the value was changed, or sealed with another key or for another context. */
  open(sealed: Buffer, context: readonly string[]): Buffer {
    if (sealed[0] !== FORMAT) throw new Error('not a sealed value of a known format')
    const nonce = sealed.subarray(1, 1 + NONCE_BYTES)
    const tag = sealed.subarray(1 + NONCE_BYTES, 1 + NONCE_BYTES + TAG_BYTES)
    const decipher = createDecipheriv('aes-256-gcm', this.#bytes, nonce, { authTagLength: TAG_BYTES })
      .setAAD(encodeContext(context))
      .setAuthTag(tag)
    return Buffer.concat([decipher.update(sealed.subarray(1 + NONCE_BYTES + TAG_BYTES)), decipher.final()])
  }

  /** Seals a key with this one. */
  sealKey(key: SecretKey, context: readonly string[]): Buffer {
    return this.seal(key.#bytes, context)
  }

  openKey(sealed: Buffer, context: readonly string[]): SecretKey {
    return new SecretKey(this.open(sealed, context))
  }

  /** What only a holder of this key can make of these parts. */
  mac(context: readonly string[]): Buffer {
    return createHmac('sha256', this.#bytes).update('a mac of ').update(encodeContext(context)).digest()
  }

  /** An id to tell keys apart; it reveals nothing about the key. */
  get id(): string {
    return createHmac('sha256', this.#bytes).update('the id of this key').digest('hex').slice(0, 12)
  }

  toJSON(): string {
    return '[redacted]'
  }
}

export function newSecretKey(): SecretKey {
  return new SecretKey(randomBytes(KEY_BYTES))
}

/** Writes a new key, readable by its owner only, and resolves once it is on disk. Throws if the file exists. */
export async function writeKeyFile(path: string): Promise<void> {
  const file = await open(path, 'wx', 0o600)
  try {
    await file.writeFile(randomBytes(KEY_BYTES))
    await file.sync()
  } finally {
    await file.close()
  }
}

/**
 * Returns the key in a file, creating it at the first call. If several processes create it at once, one wins and all
 * read its key: the file gets its name only once it is complete and on disk.
 */
export async function loadSecretKey(path: string): Promise<SecretKey> {
  const existing = await readKeyFile(path)
  if (existing) return existing
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  await writeKeyFile(draft)
  await link(draft, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error
  })
  await unlink(draft)
  const made = await readKeyFile(path)
  if (!made) throw new Error(`the key file ${path} vanished while it was being created`)
  return made
}

/** Returns null if the file does not exist. */
export async function readKeyFile(path: string): Promise<SecretKey | null> {
  const bytes = await readBytesIfThere(path)
  return bytes && new SecretKey(bytes)
}

/** Encodes each part with its length, so that different lists never have the same encoding. */
function encodeContext(parts: readonly string[]): Buffer {
  return Buffer.from(parts.map((part) => `${Buffer.byteLength(part)}:${part}`).join(''))
}
