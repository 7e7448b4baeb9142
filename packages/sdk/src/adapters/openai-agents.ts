// Units as the sandboxes of agents of the OpenAI Agents SDK: a client that makes one for each agent, and a session for a
// unit that is there already.

import {
  cloneManifest,
  isNoopSnapshotSpec,
  Manifest,
  type ManifestInit,
  type SandboxClient,
  type SandboxClientCreateArgs,
  type SandboxClientOptions,
  SandboxConfigurationError,
  SandboxUnsupportedFeatureError,
} from '@openai/agents/sandbox'
import { Berth } from '../berth.ts'
import type { Unit } from '../unit.ts'
import type { CreateOptions } from '../units.ts'
import { UnitSession, type UnitSessionState } from './openai-agents-session.ts'

export { UnitSession, type UnitSessionState }

/** What units are made from, as for `berth.units.create`. */
export type UnitClientOptions = SandboxClientOptions & Partial<CreateOptions>

const DEFAULT_IMAGE = 'berth.local/python:3.11'

/**
 * Makes a unit for an agent, and destroys it when the framework ends its sandbox. For `sandbox: { client }` of a run; its
 * `options` are added to those that are given here.
 *
 * Entries of a manifest may be files, folders, local files and folders below the working directory, and Git repositories,
 * for which the image needs git. Mounts, snapshots, users and groups of a manifest are refused.
 */
export class UnitSandboxClient implements SandboxClient<UnitClientOptions, UnitSessionState> {
  readonly backendId = 'berth'
  readonly #berth: Berth
  readonly #options: UnitClientOptions

  /** @param settings `berth`: default: one of the environment. The rest is for every unit that it makes. */
  constructor({ berth = new Berth(), ...options }: UnitClientOptions & { berth?: Berth } = {}) {
    this.#berth = berth
    this.#options = options
  }

  /** @throws SandboxUnsupportedFeatureError for what a unit cannot do; BerthError as `berth.units.create` does. */
  async create(
    asked: SandboxClientCreateArgs<UnitClientOptions> | Manifest = {},
    otherOptions?: UnitClientOptions,
  ): Promise<UnitSession> {
    const {
      manifest: given,
      options,
      snapshot,
    } = asked instanceof Manifest ? { manifest: asked, options: otherOptions } : asked
    if (snapshot && !isNoopSnapshotSpec(snapshot))
      throw new SandboxUnsupportedFeatureError('Units take no snapshots of this kind: fork the unit instead.')
    const manifest = cloneManifest(given ?? {})
    const spec: UnitClientOptions = { ...this.#options, ...options }
    const unit = await this.#berth.units.create({ ...spec, image: spec.image ?? DEFAULT_IMAGE })
    const session = sessionOf(unit, manifest, true)
    try {
      await session.start()
      await session.applyManifest(manifest)
      return session
    } catch (error) {
      await unit.destroy()
      throw error
    }
  }

  /** The unit of a session that was serialized. Throws `not_found` where it is gone. */
  async resume(state: UnitSessionState): Promise<UnitSession> {
    return new UnitSession(await this.#berth.units.get(state.unitId), state, true)
  }

  async delete(state: UnitSessionState): Promise<void> {
    await (await this.#berth.units.get(state.unitId)).destroy()
  }

  /** A unit goes with its sandbox: only what the framework keeps on purpose can be taken up again. */
  canPersistOwnedSessionState(): boolean {
    return false
  }

  async serializeSessionState({
    unitId,
    manifest,
    environment,
  }: UnitSessionState): Promise<Record<string, unknown>> {
    // What the manifest resolves at run time may be secret, and is resolved again.
    const kept = Object.entries(environment ?? {}).filter(([name]) => !(name in manifest.environment))
    return { unitId, environment: Object.fromEntries(kept) }
  }

  /** @throws SandboxConfigurationError for the state of another kind of sandbox. */
  async deserializeSessionState(state: Record<string, unknown>): Promise<UnitSessionState> {
    const { unitId, environment } = state
    if (typeof unitId !== 'string') throw new SandboxConfigurationError('This state has no unitId.')
    const manifest = new Manifest(state.manifest as ManifestInit)
    const added = (environment ?? {}) as Record<string, string>
    return {
      unitId,
      manifest,
      workspaceReady: true,
      environment: { ...added, ...(await manifest.resolveEnvironment()) },
    }
  }
}

/**
 * A unit of yours as the sandbox of an agent, for `sandbox: { session }` of a run. It stays when the run is over.
 *
 * @param options `root`: the folder that the agent works in. It is made if it is not there.
 */
export function unitSession(unit: Unit, { root = '/workspace' }: { root?: string } = {}): UnitSession {
  return sessionOf(unit, new Manifest({ root }), false)
}

function sessionOf(unit: Unit, manifest: Manifest, isOwned: boolean): UnitSession {
  return new UnitSession(unit, { unitId: unit.id, manifest, workspaceReady: true, environment: {} }, isOwned)
}
