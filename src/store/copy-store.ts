// Copies one store into another, of any engine, in batches. After an interruption it can be run again. At the end it checks
// the result by counts and checksums of all records on both sides.
import { hash } from 'node:crypto'
import { BATCH, isSame, pairRecords, readBatches } from './compare-stores.ts'
import { COUNTED_KINDS, type Kind, KINDS, type RecordStore, type StoredRecord } from './records.ts'
import type { Store } from './store.ts'
import { toJson } from './to-json.ts'

/** Called after each batch with the step, the number of records done and the number of all. */
type Progress = (step: string, done: number, all: number) => void

/** The copy can't be made, or is not right; the message is for the operator. */
export class CopyRefused extends Error {
  override name = 'CopyRefused'
}

/** Resolves with the number of records of each kind; throws `CopyRefused`. */
export async function copyStore(source: Store, target: Store, progress: Progress): Promise<Map<Kind, number>> {
  if (await source.isUnfinishedCopy())
    throw new CopyRefused('The source is itself an unfinished copy; finish that one first.')
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

async function requireEmpty(target: RecordStore): Promise<void> {
  for (const kind of KINDS) {
    const count = await target.count(kind)
    if (count === 0) continue
    throw new CopyRefused(
      `The target has data already (${titleOf(kind)}: ${count}); nothing was changed. Copy into an empty database.`,
    )
  }
}

/** The keys of a store belong to its environment, so the target belongs to the same one. */
async function copyEnvironment(source: Store, target: Store): Promise<void> {
  const environment = await source.environment()
  if (environment === undefined) return
  const recorded = await target.recordEnvironment(environment)
  if (recorded === environment) return
  throw new CopyRefused(
    `The source belongs to ${environment}, the target to ${recorded}; nothing was changed. Copy into another database.`,
  )
}

async function removeOutdated(kind: Kind, source: RecordStore, target: RecordStore, progress: Progress): Promise<void> {
  const all = await target.count(kind)
  // Append-only records can't be removed, and do not change; if they differ nevertheless, the check at the end finds it.
  if (all === 0 || kind.appendOnly) return
  let compared = 0
  let outdated: StoredRecord[] = []
  for await (const [here, there] of pairRecords(kind, source, target)) {
    if (there === undefined) continue
    if (here === undefined || !isSame(here, there)) outdated.push(there)
    compared += 1
    if (compared % BATCH > 0 && compared < all) continue
    await target.remove(kind, outdated)
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
    await target.write(kind, missing)
    done += missing.length
    missing = []
    progress(`Copying ${titleOf(kind)}`, done, Math.max(done, all))
  }
  for await (const [here, there] of pairRecords(kind, source, target)) {
    if (here !== undefined && there === undefined) missing.push(here)
    if (missing.length === BATCH) await add()
  }
  await add()
}

async function requireSame(kind: Kind, source: RecordStore, target: RecordStore, progress: Progress): Promise<number> {
  const all = await target.count(kind)
  const there = await summarise(target, kind, (done) =>
    progress(`Checking ${titleOf(kind)}`, done, Math.max(done, all)),
  )
  const here = await summarise(source, kind, () => {})
  if (here.count === there.count && here.checksum === there.checksum) return there.count
  throw new CopyRefused(
    `${titleOf(kind)} differ: ${here.count} at the source, ${there.count} at the target, ${here.count === there.count ? 'with other contents' : 'so some are missing'}. ` +
      'Is a service still running on one of them? Stop it and run the same copy again; if that does not help, empty the target first.',
  )
}

/** The checksum is the sum of a hash of each record, so that it does not depend on the order of reading. */
async function summarise(
  store: RecordStore,
  kind: Kind,
  onBatch: (done: number) => void,
): Promise<{ count: number; checksum: bigint }> {
  let count = 0
  let checksum = 0n
  for await (const records of readBatches(store, kind)) {
    for (const record of records) checksum = BigInt.asUintN(64, checksum + hashOf(record))
    count += records.length
    onBatch(count)
  }
  return { count, checksum }
}

function hashOf(record: StoredRecord): bigint {
  return hash('sha256', toJson(record), 'buffer').readBigUInt64LE()
}

/** Returns the name of a kind as shown to people, such as "api keys". */
export function titleOf({ name }: Kind): string {
  return name.replaceAll('_', ' ')
}
