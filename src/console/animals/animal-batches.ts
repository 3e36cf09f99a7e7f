// Changes of many animals as a whole: does them slice by slice, goes on where one has stopped, takes it back, and shows what became of
// its animals, in the list after a press and on a page of its own.
import { int64FromText } from '../../contract/int64.ts'
import { textInWords } from '../../contract/pet-words.ts'
import { entryOf } from '../../contract/text/entry-of.ts'
import { html, type Html, isolated, isolatedNames } from '../../http/html/html.ts'
import { aboutPet } from '../../store/account-store.ts'
import { type Batch, GOING_ON, UNDOABLE } from '../../store/batches/batch.ts'
import { keepingPosition } from './animal-addresses.ts'
import { authorOf, byWhom, changedAnimal, readHistory, readNames } from './animal-history.ts'
import { about } from '../every-page/form-page.ts'
import { buttonForm, hidden } from '../every-page/forms.ts'
import { readOnce } from '../every-page/readings.ts'
import { count, counted, DAY_MS, minute } from '../every-page/times.ts'
import { type ConsoleRoute, forMembers, type HtmlPage, isManager } from '../every-page/visit.ts'
import type { MemberVisit, Outcome } from '../every-page/visit.ts'

const PATH = '/animals/batches'

export const animalBatchesRoutes: readonly ConsoleRoute[] = [
  forMembers('GET', `${PATH}/{id}`, about(find)(batchPage)),
  forMembers('POST', `${PATH}/{id}`, about(find)(goOn)),
]

/** An Undo is shown with what it takes back. */
interface Found {
  batch: Batch
  undo: Batch | undefined
}

export async function find({ store: { batches } }: MemberVisit, digits: string): Promise<Found | undefined> {
  const read = async (id: bigint | undefined) => (id === undefined ? undefined : batches.find(id))
  const named = await read(int64FromText(digits))
  const batch = named?.undoes === undefined ? named : await read(named.undoes)
  return batch && { batch, undo: await read(batch.undoneBy) }
}

export const addressOf = ({ id }: Batch) => `${PATH}/${id}`

/** For how long a request works on a batch, for a browser or a proxy that gives up; the page that follows offers to go on. */
const WORK_MS = 10_000

/** Does what is left of a batch. Stops after a slice when the client has gone. */
export async function work(visit: MemberVisit, batch: Batch | undefined): Promise<void> {
  if (batch === undefined) return
  const { batches } = visit.store
  const until = performance.now() + WORK_MS
  await readOnce(`batch ${batch.id}`, visit, async (left) => {
    do left.throwIfAborted()
    while ((await batches.advance(batch.id, { ...authorOf(visit), at: visit.clock() })) && performance.now() < until)
  })
}

const isOwn = ({ who, now }: MemberVisit, { accountId, at }: Batch, others = false) =>
  (accountId === who.account.id || others) && now - at < DAY_MS

/** Whether the visitor may take a batch back. */
export function mayUndo(visit: MemberVisit, batch: Batch): boolean {
  const { action, changed, undoneBy } = batch
  return UNDOABLE.has(action) && changed > 0 && undoneBy === undefined && isOwn(visit, batch, isManager(visit))
}

/** Whether the visitor may go on: with an Undo whoever might have begun it, since its author may have left or be a manager no more. */
function mayGoOn(visit: MemberVisit, { batch, undo }: Found): boolean {
  const latest = undo ?? batch
  const isAllowed = isManager(visit) || (batch.accountId === visit.who.account.id && batch.action !== 'removed')
  const isOpen = latest.done < latest.total && (undo ? UNDOABLE : GOING_ON).has(batch.action)
  return isOpen && isAllowed && isOwn(visit, latest, undo !== undefined)
}

async function goOn(visit: MemberVisit, { batch, undo }: Found): Promise<Outcome> {
  const { form, query, store } = visit
  const latest = undo ?? batch
  if (form.get('do') === 'Undo' && mayUndo(visit, batch))
    await work(visit, await store.batches.undo(batch.id, authorOf(visit)))
  else if (mayGoOn(visit, { batch, undo })) await work(visit, latest)
  const list = keepingPosition('/animals', query, { batch: String(batch.id) })
  return { redirect: form.get('on') === 'list' ? `${list}#told` : addressOf(batch) }
}

const DID = { changed: 'changed', removed: 'removed', imported: 'added', undone: 'changed back' }

/** How many animals are listed. */
const LISTED = 20

/** Says what has become of a batch, with the buttons that go on with it or take it back. */
async function told(visit: MemberVisit, { batch, undo }: Found, on: 'list' | 'page'): Promise<Html> {
  const { action, data } = batch
  const latest = undo ?? batch
  const { total, done, changed } = latest
  const leftAlone = done - changed
  const { batches } = visit.store
  const kept = action === 'imported' && undo ? await batches.added(batch.id, LISTED) : []
  const left = [...kept.map(({ id }) => id), ...(await batches.leftAlone(batch.id, LISTED))]
  const newest = await Promise.all(left.map(async (id) => (await readHistory(visit, id)).changes[0]))
  const did = undo && action === 'imported' ? 'removed again' : (entryOf(DID, latest.action) ?? 'changed')
  const to =
    undo === undefined && data.field && html` to ${isolated(textInWords(data.field, data.to ?? '', visit.categories))}`
  return html`<div class="notice ${leftAlone > 0 || done < total ? 'warn' : 'good'}" role="status"><div>
      <p>${(changed > 0 || leftAlone === 0) && html`<strong>${counted(changed, 'animal')}</strong> ${did}${to}.`}${done < total && ` ${count(done)} of ${count(total)} done.`}</p>
      ${leftAlone > 0 && html`<p><strong>${counted(leftAlone, 'animal')}</strong> left alone. What came first:</p>`}
      <ul>${newest.map((change, nth) => html`<li>${change ? html`${isolated(change.subject)}: ${isolatedNames(change.detail ?? '')} · ${change.by}, ${minute(change.at)}` : String(left[nth])}</li>`)}</ul></div>
    ${mayGoOn(visit, { batch, undo }) && press(visit, batch, 'Continue', on)}${mayUndo(visit, batch) && press(visit, batch, 'Undo', on)}</div>`
}

/** Renders a button that leads back to the list, or to the page of the batch. */
export function press(visit: MemberVisit, batch: Batch, does: 'Undo' | 'Continue', on: 'list' | 'page'): Html {
  const fields = html`${hidden('do', does)}${hidden('on', on)}`
  const button = html`${fields}<button class="button quiet" ${on === 'list' && does === 'Undo' && html`id="told"`}>${does}</button>`
  return buttonForm(visit, keepingPosition(addressOf(batch), visit.query), button)
}

/** Returns the notice of what the visitor has just done to many animals of the list. */
export async function batchNotice(visit: MemberVisit): Promise<Html | undefined> {
  const named = visit.query.get('batch')
  if (named === NONE)
    return html`<p class="notice" role="status">Nothing was to be changed: either no animal was ticked, or they have that already.</p>`
  if (named === OTHERS)
    return html`<p class="notice warn" role="alert"><strong>Nothing was changed:</strong> somebody has changed these animals since you selected them. They are selected as they are now.</p>`
  const found = named === null ? undefined : await find(visit, named)
  return found && isOwn(visit, found.undo ?? found.batch) ? told(visit, found, 'list') : undefined
}

/** What the address of the list has in place of a batch: nothing was to be done, or all were selected and are others now. */
export const NONE = 'none'
export const OTHERS = 'others'

async function batchPage(visit: MemberVisit, found: Found): Promise<HtmlPage> {
  const { batch, undo } = found
  const { accounts, batches } = visit.store
  const nameOf = await readNames(visit, [batch.accountId, undo?.accountId])
  const by = (each: Batch) => byWhom({ at: each.at, by: each.accountId }, nameOf)
  const added = batch.action === 'imported' ? await batches.added(batch.id, LISTED) : []
  const changes = await accounts.changesIn(batch.id, LISTED)
  const items = [...added.map(aboutPet), ...changes]
  return {
    title: counted(batch.total, 'animal'),
    section: 'animals',
    body: html`<p class="back"><a href="/animals/changes">← History</a></p>
      <h1>${counted(batch.total, 'animal')}</h1>
      <p class="quiet-text">${batch.data.file && html`${isolated(batch.data.file)} · `}${by(batch)}${undo && html`; undone by ${by(undo)}`}</p>
      ${await told(visit, found, 'page')}
      <ul class="plain-list">${items.map((item) => html`<li>${changedAnimal(item)}</li>`)}</ul>
      ${items.length === LISTED && html`<p class="quiet-text">Only ${LISTED} are listed.</p>`}`,
  }
}
