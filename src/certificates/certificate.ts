// What a certificate in PEM says of itself.

import { X509Certificate } from 'node:crypto'

/** The first one; null where there is none that can be read. */
export function readCertificate(pem: string): X509Certificate | null {
  try {
    return new X509Certificate(pem)
  } catch {
    return null
  }
}

/** Two thirds of its time are over: early enough that a host may be away for weeks, however long it is good for. */
export function isDue({ validFromDate, validToDate }: X509Certificate, now: Date): boolean {
  const [fromMs, toMs] = [validFromDate.getTime(), validToDate.getTime()]
  return now.getTime() > fromMs + ((toMs - fromMs) * 2) / 3
}

export function hasEnded({ validToDate }: X509Certificate, now: Date): boolean {
  return now.getTime() > validToDate.getTime()
}
