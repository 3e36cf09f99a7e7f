// Copies one store into another, of any engine, in batches, and finally compares all records of both stores. An interrupted
// copy can be run again.
import {
  BATCH,
  COUNTED_KINDS,
  type Kind,
  KINDS,
  readBatches,
  type RecordStore,
  type StoredRecord,
  titleOf,
  toJson,
  type Value,
  whyUnknown,
} from './records.ts'
import { ensureEnvironment } from './environment.ts'
import { type Store, StoreUnavailable } from './store.ts'

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
  // The source may have changed since an interrupted copy. Outdated records are removed before any are added, so that no new
  // record collides with an old one, such as an account that took over the email address of another.
  for (const kind of KINDS.toReversed()) await removeOutdated(kind, source.records, target.records, progress)
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

async function removeOutdated(kind: Kind, source: RecordStore, target: RecordStore, progress: Progress): Promise<void> {
  const all = await target.count(kind)
  // Append-only records can't be removed and do not change. If they differ nevertheless, the final comparison finds it.
  if (all === 0 || kind.appendOnly) return
  let compared = 0
  let outdated: StoredRecord[] = []
  for await (const [inSource, inTarget] of pairRecords(kind, source, target)) {
    if (inTarget === undefined) continue
    if (!isSame(inSource, inTarget)) outdated.push(inTarget)
    compared += 1
    if (compared % BATCH > 0 && compared < all) continue
    await changeTarget(kind, target.remove(kind, outdated))
    outdated = []
    progress(`Comparing ${titleOf(kind)}`, compared, all)
    // The rest of the source can only hold missing records.
    if (compared === all) return
  }
}

async function addMissing(kind: Kind, source: RecordStore, target: RecordStore, progress: Progress): Promise<void> {
  const all = await source.count(kind)
  let done = await target.count(kind)
  let missing: StoredRecord[] = []
  const add = async () => {
    if (missing.length === 0) return
    await changeTarget(kind, target.write(kind, missing))
    done += missing.length
    missing = []
    progress(`Copying ${titleOf(kind)}`, done, Math.max(done, all))
  }
  for await (const [inSource, inTarget] of pairRecords(kind, source, target)) {
    if (inTarget === undefined) missing.push(inSource!)
    if (missing.length === BATCH) await add()
  }
  await add()
}

/** Refuses a change that collides with what another process has changed meanwhile, such as the same record. */
async function changeTarget(kind: Kind, change: Promise<unknown>): Promise<void> {
  try {
    await change
  } catch (error) {
    if (error instanceof StoreUnavailable || !(error instanceof Error)) throw error
    throw new CopyRefused(`The target refuses ${titleOf(kind)}: ${error.message}. ${AGAIN}`, { cause: error })
  }
}

/** Compares every record of both stores; resolves with their number. */
async function requireSame(kind: Kind, source: RecordStore, target: RecordStore, progress: Progress): Promise<number> {
  const all = await target.count(kind)
  let [atSource, atTarget, different] = [0, 0, 0]
  for await (const [inSource, inTarget] of pairRecords(kind, source, target)) {
    if (inSource !== undefined) atSource += 1
    if (inTarget !== undefined) atTarget += 1
    if (!isSame(inSource, inTarget)) different += 1
    if (inTarget !== undefined && (atTarget % BATCH === 0 || atTarget === all))
      progress(`Checking ${titleOf(kind)}`, atTarget, Math.max(atTarget, all))
  }
  if (different === 0) return atTarget
  throw new CopyRefused(
    `${titleOf(kind)} differ: ${atSource} at the source, ${atTarget} at the target, ${atSource === atTarget ? 'with other contents' : 'so some are missing'}. ` +
      AGAIN,
  )
}

/** The records of two stores that have the same key; undefined for the one of them that has no such record. */
type Pair = readonly [StoredRecord | undefined, StoredRecord | undefined]

/** Merges the records of both stores in the order of the key. */
async function* pairRecords(kind: Kind, first: RecordStore, second: RecordStore): AsyncGenerator<Pair> {
  const [ones, others] = [readRecords(first, kind), readRecords(second, kind)]
  let [one, other] = await Promise.all([ones.next(), others.next()])
  while (!one.done || !other.done) {
    const order = compareKeys(kind, one.value, other.value)
    yield [order <= 0 ? one.value : undefined, order >= 0 ? other.value : undefined]
    if (order <= 0) one = await ones.next()
    if (order >= 0) other = await others.next()
  }
}

async function* readRecords(store: RecordStore, kind: Kind): AsyncGenerator<StoredRecord, undefined> {
  for await (const batch of readBatches(store, kind)) for (const record of batch) yield record
}

function isSame(record: StoredRecord | undefined, other: StoredRecord | undefined): boolean {
  return toJson(record) === toJson(other)
}

/** Returns a negative number if `one` comes first, 0 for the same key. Undefined, the end of a store, sorts last. */
function compareKeys({ key }: Kind, one: StoredRecord | undefined, other: StoredRecord | undefined): number {
  if (one === undefined || other === undefined) return one === undefined ? 1 : -1
  for (const column of key) {
    const order = compareValues(one[column]!, other[column]!)
    if (order !== 0) return order
  }
  return 0
}

/** Compares text by its UTF-8 bytes as both engines do, not by UTF-16 units as JavaScript does. */
function compareValues(one: Value, other: Value): number {
  if (typeof one === 'bigint' && typeof other === 'bigint') return one < other ? -1 : Number(one > other)
  return Buffer.compare(Buffer.from(String(one)), Buffer.from(String(other)))
}
