// An identity of the fleet that was issued a while ago, or has ended: openssl signs from now on only.

import { createPrivateKey } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { objectId, octets, sequence, set, tagged, text, utcTime } from '../../src/certificates/der.ts'
import {
  alternativeNames,
  certificatePem,
  COMMON_NAME,
  ECDSA_WITH_SHA256,
  makeKey,
  publicKeyOf,
  serialNumber,
  signed,
  toPem,
  VERSION_3,
} from '../../src/certificates/signed.ts'
import { type FleetMember, fleetNameOf } from '../../src/lib/fleet-identity.ts'

const ORGANIZATION = objectId('2.5.4.10')
const EXTENDED_KEY_USAGE = objectId('2.5.29.37')
const purposes = { server: '1.3.6.1.5.5.7.3.1', client: '1.3.6.1.5.5.7.3.2' }
const purposeOf = {
  server: [purposes.server, purposes.client],
  engine: [purposes.server],
  gateway: [purposes.client],
}

/** In PEM, by the authority in `<dataDir>/fleet/`, as src/certificates/fleet-ca.ts writes it. */
export async function agedIdentity(
  dataDir: string,
  member: FleetMember,
  { from, to }: { from: Date; to: Date },
): Promise<string> {
  const read = async (file: string) => await readFile(join(dataDir, 'fleet', file), 'utf8')
  const [authority, authorityKey] = [await read('ca.crt'), createPrivateKey(await read('ca.key'))]
  const key = await makeKey()
  const named = (type: Buffer, value: string) => set(sequence(type, text(value)))
  const content = sequence(
    VERSION_3,
    serialNumber(),
    ECDSA_WITH_SHA256,
    sequence(named(ORGANIZATION, 'Berth'), named(COMMON_NAME, 'Berth fleet')),
    sequence(utcTime(from), utcTime(to)),
    sequence(named(ORGANIZATION, 'Berth')),
    publicKeyOf(key),
    tagged(
      3,
      sequence(
        sequence(EXTENDED_KEY_USAGE, octets(sequence(...purposeOf[member.role].map(objectId)))),
        alternativeNames([fleetNameOf(member)]),
      ),
    ),
  )
  return toPem(key) + certificatePem(signed(content, authorityKey)) + authority
}
