// The clients that people use: each asks a registry of the test's own, `registries.ts`, for what it prints, and sends a secret in
// its own way. They find their home in $HOME.

import { chromiumOptions } from '../chromium.ts'
import { COMMIT, PLACEHOLDER } from './registries.ts'

/** The registry of all of them. */
export const CLIENTS_HOST = 'api.example.com'
const VERSION = '1.2.3'

export type Client = {
  name: string
  /** Of Debian, as a person would call it. */
  program: string
  command: string[]
  prints: string
  /** Where the host finds the secret, and in what form. */
  header: 'authorization' | 'key'
  sends: (secret: string) => string
}

const bearer = (secret: string) => `Bearer ${secret}`
const asItIs = (secret: string) => secret
const basic = (secret: string) => `Basic ${Buffer.from(`x:${secret}`).toString('base64')}`

const byKey = { prints: VERSION, header: 'key', sends: asItIs } as const
const byAuthorization = { prints: VERSION, header: 'authorization' } as const

const withUser = `https://x:${PLACEHOLDER}@${CLIENTS_HOST}`
const thing = `https://${CLIENTS_HOST}/thing`
const fetching = `fetch('${thing}', { headers: { 'x-key': '${PLACEHOLDER}' } }).then((answer) => answer.text()).then(console.log)`

/** Each speaks TLS by a library of its own, or sends a secret in a way of its own. */
export const clients: Client[] = [
  {
    ...byKey,
    name: 'curl',
    program: 'curl',
    command: ['curl', '-sS', '-H', `X-Key: ${PLACEHOLDER}`, thing],
  },
  {
    ...byAuthorization,
    name: 'curl with a user in the URL',
    program: 'curl',
    command: ['curl', '-sS', `${withUser}/thing`],
    sends: basic,
  },
  {
    ...byKey,
    name: 'wget',
    program: 'wget',
    // It knows the system's file, and no variable.
    command: shell(
      `wget -qO- \${WGET_CA:+--ca-certificate="$WGET_CA"} --header="X-Key: ${PLACEHOLDER}" ${thing}`,
    ),
  },
  {
    ...byAuthorization,
    name: 'git with a user in the URL',
    program: 'git',
    command: ['git', 'ls-remote', `${withUser}/repository.git`],
    prints: COMMIT,
    sends: basic,
  },
  {
    ...byAuthorization,
    name: 'git with a header of its configuration',
    program: 'git',
    command: [
      'git',
      '-c',
      `http.extraHeader=Authorization: ${bearer(PLACEHOLDER)}`,
      'ls-remote',
      `https://${CLIENTS_HOST}/repository.git`,
    ],
    prints: COMMIT,
    sends: bearer,
  },
  {
    ...byAuthorization,
    name: 'pip',
    program: 'pip',
    command: ['pip', '--isolated', '--disable-pip-version-check', 'index', 'versions', 'thing'].concat([
      '--index-url',
      `${withUser}/simple`,
    ]),
    sends: basic,
  },
  {
    ...byKey,
    name: 'python3',
    program: 'python3',
    command: [
      'python3',
      '-c',
      `import urllib.request as r; print(r.urlopen(r.Request('${thing}', headers={'X-Key': '${PLACEHOLDER}'})).read().decode())`,
    ],
  },
  {
    ...byAuthorization,
    name: 'npm',
    program: 'npm',
    command: shell(
      `npm --fetch-retries=0 view thing version --registry=https://${CLIENTS_HOST}/ --//${CLIENTS_HOST}/:_authToken=${PLACEHOLDER}`,
    ),
    sends: bearer,
  },
  { ...byKey, name: 'node', program: 'node', command: ['node', '-e', fetching] },
  { ...byKey, name: 'deno', program: 'deno', command: ['deno', 'eval', fetching] },
  {
    ...byAuthorization,
    name: 'deno with a module of a private host',
    program: 'deno',
    command: shell(
      `DENO_AUTH_TOKENS=${PLACEHOLDER}@${CLIENTS_HOST} deno run --reload https://${CLIENTS_HOST}/thing.js`,
    ),
    sends: bearer,
  },
  {
    ...byAuthorization,
    name: 'go',
    program: 'go',
    command: shell(
      `NETRC="$HOME/go.netrc" GOPROXY=https://${CLIENTS_HOST}/go GOSUMDB=off GO111MODULE=on go list -m -versions example.com/thing`,
    ),
    sends: basic,
  },
  {
    ...byAuthorization,
    name: 'cargo',
    program: 'cargo',
    command: ['cargo', 'search', 'thing', '--registry', 'lab'],
    sends: asItIs,
  },
  {
    ...byKey,
    name: 'java with the authority in its own store',
    program: 'java',
    command: shell(javaCommand()),
  },
]

/** Files of a home, by their paths in it. */
export const homeFiles: Record<string, string> = {
  '.cargo/config.toml': `[registries.lab]\nindex = "sparse+https://${CLIENTS_HOST}/index/"\ntoken = "${PLACEHOLDER}"\ncredential-provider = "cargo:token"\n`,
  'go.netrc': `machine ${CLIENTS_HOST} login x password ${PLACEHOLDER}\n`,
  'Ask.java': `import java.net.URI; import java.net.http.*;
public class Ask { public static void main(String[] none) throws Exception {
  var request = HttpRequest.newBuilder(URI.create("${thing}")).header("X-Key", "${PLACEHOLDER}").build();
  System.out.println(HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString()).body());
} }`,
}

/** The whole of Debian's Chromium, as root, headless and with nothing of its own on the network. */
export const chromiumCommand = ['chromium', '--headless', ...chromiumOptions.args]

function shell(script: string): string[] {
  return ['sh', '-c', script]
}

/** Java reads no bundle in PEM: it gets the last certificate of the file, as docs/guides/secrets.md says. */
function javaCommand(): string {
  const store = '"$HOME/$(hostname).jks"'
  const last = `awk '/BEGIN/ {c = ""} {c = c $0 "\\n"} END {printf "%s", c}' "$SSL_CERT_FILE"`
  return `rm -f ${store} && ${last} | keytool -importcert -noprompt -alias berth -storepass changeit -keystore ${store} && java -Djavax.net.ssl.trustStore=${store} -Djavax.net.ssl.trustStorePassword=changeit "$HOME/Ask.java"`
}
