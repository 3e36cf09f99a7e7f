// Copies one store into another, whatever their engines: in batches, to be run again after an interruption, and checked
// in the end by counts and checksums of all that is in both.
import { hash } from 'node:crypto'
import { COUNTED_KINDS, type Kind, KINDS, type RecordStore, type StoredRecord } from './records.ts'

const BATCH = 5000

/** Told after each batch: what is being done, how far it is, and how far it goes. */
export type Progress = (step: string, done: number, all: number) => void

/** The copy can't be made, or is not right; the message is for the operator. */
export class CopyRefused extends Error {
  override name = 'CopyRefused'
}

/** Resolves with the number of records of each kind; throws `CopyRefused`. */
export async function copyStore(source: RecordStore, target: RecordStore, progress: Progress): Promise<Map<Kind, number>> {
  if (await source.isUnfinished()) throw new CopyRefused('The source is itself an unfinished copy; finish that one first.')
  if (await target.isUnfinished()) await removeUnfinished(target)
  else await requireEmpty(target)
  await target.setUnfinished(true)
  for (const kind of KINDS) await copyKind(kind, source, target, progress)
  for (const kind of COUNTED_KINDS) await target.raiseLastId(kind, await source.lastId(kind))
  const counts = new Map<Kind, number>()
  for (const kind of KINDS) counts.set(kind, await requireSame(kind, source, target, progress))
  await target.setUnfinished(false)
  return counts
}

async function requireEmpty(target: RecordStore): Promise<void> {
  for (const kind of KINDS) {
    const count = await target.count(kind)
    if (count === 0) continue
    throw new CopyRefused(`The target has data already (${titleOf(kind)}: ${count}); nothing was changed. Copy into an empty database.`)
  }
}

/** What may have changed at the source since the interruption is copied anew; animals and audit trail go on where they stopped. */
async function removeUnfinished(target: RecordStore): Promise<void> {
  for (const kind of KINDS.toReversed()) {
    if (!kind.appendOnly) while ((await target.remove(kind, BATCH)) > 0);
  }
}

async function copyKind(kind: Kind, source: RecordStore, target: RecordStore, progress: Progress): Promise<void> {
  const all = await source.count(kind)
  let done = await target.count(kind)
  for await (const records of batches(source, kind, await target.last(kind))) {
    await target.write(kind, records)
    done += records.length
    progress(`Copying ${titleOf(kind)}`, done, Math.max(done, all))
  }
}

async function requireSame(kind: Kind, source: RecordStore, target: RecordStore, progress: Progress): Promise<number> {
  const all = await target.count(kind)
  const there = await summarise(target, kind, (done) => progress(`Checking ${titleOf(kind)}`, done, Math.max(done, all)))
  const here = await summarise(source, kind, () => {})
  if (here.count === there.count && here.checksum === there.checksum) return there.count
  throw new CopyRefused(
    `${titleOf(kind)} differ: ${here.count} at the source, ${there.count} at the target, ${here.count === there.count ? 'with other contents' : 'so some are missing'}. ` +
      'Is a service still running on one of them? Stop it and run the same copy again; if that does not help, empty the target first.',
  )
}

/** The checksum is a sum of one hash a record: engines may sort text each in its own way. */
async function summarise(store: RecordStore, kind: Kind, tell: (done: number) => void): Promise<{ count: number; checksum: bigint }> {
  let count = 0
  let checksum = 0n
  for await (const records of batches(store, kind)) {
    for (const record of records) checksum = BigInt.asUintN(64, checksum + hashOf(record))
    count += records.length
    tell(count)
  }
  return { count, checksum }
}

function hashOf(record: StoredRecord): bigint {
  const text = JSON.stringify(record, (_column, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
  return hash('sha256', text, 'buffer').readBigUInt64LE()
}

async function* batches(store: RecordStore, kind: Kind, after?: StoredRecord): AsyncGenerator<StoredRecord[]> {
  for (let last = after; ; ) {
    const records = await store.read(kind, last, BATCH)
    if (records.length > 0) yield records
    if (records.length < BATCH) return
    last = records.at(-1)
  }
}

/** As people call it, such as "api keys". */
export function titleOf({ name }: Kind): string {
  return name.replaceAll('_', ' ')
}
