// Copies one store into another, of any engine, in batches, and finally compares all records of both stores. An interrupted
// copy can be run again.
import {
  COUNTED_KINDS,
  type Kind,
  KINDS,
  readBatches,
  type RecordStore,
  type StoredRecord,
  titleOf,
  toJson,
  whyUnknown,
} from '../records.ts'
import { ensureEnvironment } from './environment.ts'
import { type Store, StoreUnavailable } from '../store.ts'

/** What to do about a difference that only another process can have made. */
const AGAIN =
  'Is a service or another copy still running on one of them? Stop it and run the same copy again; if that does not help, empty the target first.'

/** Called after each batch with the step, the number of records done and the number of all. */
type Progress = (step: string, done: number, all: number) => void

/** The copy can't be made, or differs from its source; the message is for the operator. */
export class CopyRefused extends Error {
  override name = 'CopyRefused'
}

/** Resolves with the number of records of each kind; throws `CopyRefused`. */
export async function copyStore(source: Store, target: Store, progress: Progress): Promise<Map<Kind, number>> {
  if (await source.isUnfinishedCopy())
    throw new CopyRefused('The source is itself an unfinished copy; finish that one first.')
  await requireKnown('source', source.records)
  await requireKnown('target', target.records)
  if (!(await target.isUnfinishedCopy())) await requireEmpty(target.records)
  await copyEnvironment(source, target)
  await target.setUnfinishedCopy(true)
  for (const kind of KINDS) await addMissing(kind, source.records, target.records, progress)
  for (const kind of COUNTED_KINDS) await target.records.raiseLastId(kind, await source.records.lastId(kind))
  const counts = new Map<Kind, number>()
  for (const kind of KINDS) counts.set(kind, await requireSame(kind, source.records, target.records, progress))
  await target.setUnfinishedCopy(false)
  return counts
}

/** Refuses a database that a newer, compatible program has extended: unknown columns would be neither copied nor compared. */
async function requireKnown(side: string, records: RecordStore): Promise<void> {
  const why = whyUnknown(`The ${side}`, await records.unknown())
  if (why !== undefined) throw new CopyRefused(why)
}

async function requireEmpty(target: RecordStore): Promise<void> {
  for (const kind of KINDS) {
    const count = await target.count(kind)
    if (count === 0) continue
    throw new CopyRefused(
      `The target has data already (${titleOf(kind)}: ${count}); nothing was changed. Copy into an empty database.`,
    )
  }
}

/** Records the source's environment in the target: the API keys that are copied work only in that environment. */
async function copyEnvironment(source: Store, target: Store): Promise<void> {
  const environment = await source.environment()
  if (environment === undefined) return
  const recorded = await ensureEnvironment(target, { environment, isChosen: !(await source.isDefaultEnvironment()) })
  if (recorded === environment) return
  throw new CopyRefused(
    `The source belongs to ${environment}, the target to ${recorded}; nothing was changed. Copy into another database.`,
  )
}

/** Adds the records in the order of their key, so an interrupted copy goes on after as many as the target has. */
async function addMissing(kind: Kind, source: RecordStore, target: RecordStore, progress: Progress): Promise<void> {
  const all = await source.count(kind)
  const present = await target.count(kind)
  let done = 0
  for await (const batch of readBatches(source, kind)) {
    const missing = batch.slice(Math.max(0, present - done))
    done += batch.length
    if (missing.length === 0) continue
    await write(kind, target, missing)
    progress(`Copying ${titleOf(kind)}`, done, Math.max(done, all))
  }
}

/** Refuses records that collide with what another process has written, or with what the source has changed since an interrupted copy. */
async function write(kind: Kind, target: RecordStore, records: readonly StoredRecord[]): Promise<void> {
  try {
    await target.write(kind, records)
  } catch (error) {
    if (error instanceof StoreUnavailable || !(error instanceof Error)) throw error
    throw new CopyRefused(`The target refuses ${titleOf(kind)}: ${error.message}. ${AGAIN}`, { cause: error })
  }
}

/** Compares every record of both stores; resolves with their number. */
async function requireSame(kind: Kind, source: RecordStore, target: RecordStore, progress: Progress): Promise<number> {
  const [atSource, atTarget] = [await source.count(kind), await target.count(kind)]
  const copied = readBatches(target, kind)
  let same = 0
  for await (const batch of readBatches(source, kind)) {
    if (toJson(batch) !== toJson((await copied.next()).value)) break
    same += batch.length
    progress(`Checking ${titleOf(kind)}`, same, atTarget)
  }
  if (same === atSource && same === atTarget) return same
  throw new CopyRefused(
    `${titleOf(kind)} differ: ${atSource} at the source, ${atTarget} at the target, ${atSource === atTarget ? 'with other contents' : 'so some are missing'}. ` +
      AGAIN,
  )
}
