// Bringing in a spreadsheet in the console: matched, checked and corrected before anything is written, and added once.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import { CATEGORIES_A_DAY, CATEGORIES_MOST, UPLOAD_ROWS } from '../../src/contract/limits.ts'
import { UPLOAD_KEPT_MS } from '../../src/store/uploads.ts'
import { ENGINES } from '../harness/databases/engines.ts'
import { RawConnection } from '../harness/connections/raw-http.ts'
import {
  type Answered,
  type ConsoleClient,
  problemsIn,
  signedIn,
  signedInAs,
  unescaped,
} from '../harness/connections/console-client.ts'
import { describeOnSqlite, type Petstore, startPetstore } from '../harness/harness.ts'
import { event } from '../harness/databases/sample-rows.ts'

const PAGE = '/animals/import'

/** Brings in a file; resolves with the address of its page. */
async function bring(person: ConsoleClient, content: string | Buffer, name = 'pets.csv'): Promise<string> {
  const { location, body } = await send(person, content, name)
  assert.match(location ?? body, /^\/animals\/import\/[\w-]{43}$/)
  return location!
}

async function send(person: ConsoleClient, content: string | Buffer, name = 'pets.csv'): Promise<Answered> {
  return person.postFile(PAGE, await person.hiddenFields(PAGE), content, name)
}

/** What a person reads on a page. */
function textOf({ body }: Answered): string {
  const [, main = ''] = /<main[^>]*>(.*)<\/main>/s.exec(body) ?? []
  return unescaped(main.replaceAll(/<[^>]*>/g, ' '))
    .replaceAll(/\s+/g, ' ')
    .trim()
}

const namesIn = async ({ store }: Petstore) =>
  (await store.pets.list({ limit: 100_000 })).map(({ name }) => name).toReversed()

/** What a page says first: how much would be added. */
const counts = async (person: ConsoleClient, page: string) =>
  /(?:\d\S* animals?)[^;]*; \S+ rows? left out/.exec(textOf(await person.get(page)))?.[0]

/** What the inputs and selects of a page hold, as a browser sends them. */
async function typed(person: ConsoleClient, page: string): Promise<Record<string, string>> {
  const { body } = await person.get(page)
  const [, form = ''] = /<form class="form"(.*?)<\/form>/s.exec(body) ?? []
  const texts = form.matchAll(/<input type="(?:text|hidden)"[^>]*? name="(\w+)" value="([^"]*)"/g)
  const ids = form.matchAll(/<input type="text" id="\w+" name="(\w+)" value="([^"]*)"/g)
  const selects = form.matchAll(/<select[^>]* name="(\w+)".*?value="([^"]*)" selected/gs)
  return Object.fromEntries(Array.from([...texts, ...ids, ...selects], ([, name, value]) => [name, unescaped(value!)]))
}

/** Presses a button of the page of a file, with `fields` in its form. */
async function press(
  person: ConsoleClient,
  page: string,
  act: string,
  fields: Record<string, string> = {},
): Promise<Answered> {
  return person.post(page.split('?')[0]!, { ...(await typed(person, page)), ...fields, act })
}

const add = (person: ConsoleClient, page: string, fields?: Record<string, string>) => press(person, page, 'add', fields)

/** The names of the inputs of a page, by their labels. */
async function inputs(person: ConsoleClient, page: string): Promise<Map<string, string>> {
  const { body } = await person.get(page)
  const found = body.matchAll(
    /<(?:select|input)[^>]* name="(\w+)"[^>]* aria-label="([^"]*)"|<select[^>]* aria-label="([^"]*)"/g,
  )
  return new Map(Array.from(found, ([, name = '', label = '']) => [unescaped(label), name]))
}

/** The columns as the page offers them. */
async function columns(person: ConsoleClient, page: string): Promise<Record<string, string>> {
  const { body } = await person.get(`${page}/columns`)
  const selects = body.matchAll(/<select id="(\w+)".*?<\/select>/gs)
  const chosen = Array.from(selects, ([select, id]) => [id!, /value="(\w*)" selected/.exec(select)?.[1] ?? ''])
  const [, header = '0'] = /name="header" value="(\d+)" checked/.exec(body) ?? []
  return { ...(await person.hiddenFields(`${page}/columns`)), header, ...(Object.fromEntries(chosen) as object) }
}

const csv = (rows: readonly string[]) => `name,category,status\n${rows.join('\n')}\n`
const numbered = (count: number, name = 'Rex') =>
  csv(Array.from({ length: count }, (_, index) => `${name} ${index},3,`))

describeOnSqlite('Bringing in a file', (service) => {
  it('shows what would be added, adds it with its new categories, and names who did it', async () => {
    const person = await signedIn(service())
    const before = await namesIn(service())
    const page = await bring(
      person,
      csv(['Ada,Ferrets,Sold', 'Bob,3,', 'Cy, ferrets ,reserved', ',3,', 'Dan,Hamsters,']),
      'my & <b>.csv',
    )
    const shown = await person.get(page)
    assert.equal(shown.status, 200)
    assert.match(shown.body, /<bdi>my &amp; &lt;b&gt;\.csv<\/bdi>/)
    assert.match(textOf(shown), /4 animals, 2 new categories; 1 row left out\./)
    assert.match(
      textOf(shown),
      /Ferrets 2 rows: line 2, 4 .* 3 1 row: line 3 Keep the number .*Hamsters 1 row: line 6 Create it/,
    )
    assert.match(textOf(shown), /1 row to correct.* Line 5 Enter a name/)
    assert.deepEqual(await namesIn(service()), before, 'nothing is written before')
    assert.equal((await service().store.categories.names()).numberOf('Ferrets'), undefined)

    assert.equal((await add(person, page)).location, page)
    assert.deepEqual(await namesIn(service()), [...before, 'Ada', 'Bob', 'Cy', 'Dan'])
    const done = await person.get(page)
    assert.match(textOf(done), /4 of 4 animals added, .* They are not added again\. Show the animals/)
    assert.ok(!done.body.includes(`action="${page}"`), 'no button adds them once more')
    const [dan, cy] = await service().store.pets.list({ limit: 2 })
    const names = await service().store.categories.names()
    assert.deepEqual([names.names.get(dan!.categoryId), names.names.get(cy!.categoryId)], ['Hamsters', 'Ferrets'])
    assert.equal(cy!.status, 'pending')
    assert.deepEqual((await service().store.pets.addition(dan!.id))?.by, service().account.id)
    const trail = await service().store.accounts.auditTrail(service().account.id, 20)
    assert.deepEqual(
      trail.flatMap(({ action, subject }) => (action === 'category.added' ? [subject.split(' ')[0]] : [])),
      ['Hamsters', 'Ferrets'],
    )
  })

  it('matches the columns of an office’s file, with a title above them and in Windows-1252, in three presses', async () => {
    const person = await signedIn(service())
    const file =
      'Bestand 2026;;;;\r\n\r\nTier-Nr.;Tiername;Tierart;Zustand;Preis;\r\n7;Müsli;Mäuse;verfügbar;"9,50";\r\n8;"Zoë ""Z""\r\nB.";Mäuse;Verkauft;3;\r\n'
    const page = await bring(person, Buffer.from(file, 'latin1'))
    assert.equal((await person.get(page)).location, `${page}/columns`)
    const shown = textOf(await person.get(`${page}/columns`))
    assert.match(shown, /\(Windows-1252\).* Tiername Müsli Zoë "Z" B\. /)
    const offered = await columns(person, page)
    assert.deepEqual(
      [offered['header'], offered['column_1'], offered['column_2'], offered['column_3']],
      ['3', 'name', 'category', 'status'],
    )
    assert.equal((await person.post(`${page}/columns`, offered)).location, page)
    assert.match(
      textOf(await person.get(page)),
      /2 animals, 1 new category; 0 rows left out\. Read as Windows-1252\. Columns left out: Tier-Nr\., Preis/,
    )
    await add(person, page)
    assert.deepEqual((await namesIn(service())).slice(-2), ['Müsli', 'Zoë "Z"\r\nB.'])
    const [zoe] = await service().store.pets.list({ limit: 1 })
    assert.equal(zoe!.status, 'sold')
  })

  it('takes other encodings, delimiters and orders of columns, as spreadsheets write them', async () => {
    const person = await signedIn(service())
    const utf16 = (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le')
    for (const [content, path] of [
      [utf16('Status\tCategory\tName\r\n\t3\t"Zoë 🐈"\r\n'), 'C:\\fakepath\\büro.csv'],
      ['\uFEFFcategory;name;\r\n3;"Zoë 🐈";\r\n;;;\r\n3;', 'a.csv'],
      ['sep=|\nname|categoryId|id\nZoë 🐈|3|99\n', 'b.csv'],
      ['name,category,status\n"Zoë 🐈",3\n', 'short.csv'],
      [Buffer.from('category,name\n3,Zo\xeb', 'latin1'), 'latin.csv'],
    ] as const) {
      const page = await bring(person, content, path)
      assert.match((await counts(person, page)) ?? '', /^(?:1 animal|0 animals, 1 here already); /, path)
      await add(person, page, { similar: 'all' })
      assert.match((await namesIn(service())).at(-1)!, /^Zoë(?: 🐈)?$/, path)
    }
    for (const content of ['Name,Pet name,Category\nMrs Smith,Rex,3\n', 'name,category,name\nRex,3,Mrs Smith\n']) {
      const page = await bring(person, content)
      assert.equal((await person.get(page)).location, `${page}/columns`, 'two columns may be the name')
    }
    const marked = await bring(person, Buffer.from('efbbbf6e616d652c63617465676f72790a5a6feb2c330a', 'hex'))
    assert.match(
      textOf(await person.get(marked)),
      /Line 2 Some letters were not saved well/,
      'it says that it is UTF-8',
    )
    const page = await bring(person, 'ID,Name,Category\n1,Rex,3\n')
    assert.match(
      textOf(await person.get(page)),
      /Columns left out: ID ?\. Each animal gets an id of its own, so no animal that is here is changed/,
    )
  })

  it('takes rows that are pasted, also without the names of columns, and lets their first row be chosen', async () => {
    const person = await signedIn(service())
    const paste = async (rows: string) => {
      const form = new FormData()
      for (const [name, value] of Object.entries(await person.hiddenFields(PAGE))) form.append(name, value)
      form.append('rows', rows)
      const init = { method: 'POST', body: form, headers: { Cookie: person.cookie }, redirect: 'manual' } as const
      return (await fetch(service().url + PAGE, init)).headers.get('location')!
    }
    const page = await paste('Rex "the dog"\tDogs\tavailable\n"Two\nlines"\tDogs\t\n'.repeat(800))
    const offered = await columns(person, page)
    assert.deepEqual(
      [offered['header'], offered['column_0'], offered['column_1'], offered['column_2']],
      ['0', 'name', 'category', 'status'],
    )
    assert.match(textOf(await person.get(`${page}/columns`)), /Pasted rows ?: name and category are needed/)
    const again = await person.post(`${page}/columns`, { ...offered, header: '1' })
    assert.equal(again.location, `${page}/columns`, 'another row of names is shown first')
    assert.equal((await columns(person, page))['header'], '1')
    await person.post(`${page}/columns`, { ...(await columns(person, page)), header: '0' })
    await person.post(`${page}/columns`, await columns(person, page))
    assert.equal(await counts(person, page), '1,600 animals, 1 new category; 0 rows left out')
    await add(person, page)
    assert.deepEqual((await namesIn(service())).slice(-2), ['Rex "the dog"', 'Two\r\nlines'])
    assert.match(textOf(await person.get(await paste(''))), /The file is empty/)
  })

  it('asks for the columns that it needs, each once', async () => {
    const person = await signedIn(service())
    const page = await bring(person, 'a,b\nRex,3\n')
    const offered = await columns(person, page)
    for (const [column_0, column_1, says] of [
      ['name', 'name', 'Two columns are Name'],
      ['', 'category', 'Choose the column with the names'],
      ['name', 'status', 'Choose the column with the categories'],
    ] as const) {
      const refused = await person.post(`${page}/columns`, { ...offered, header: '1', column_0, column_1 })
      const shown =
        offered['header'] === '1'
          ? refused
          : await person.post(`${page}/columns`, { ...offered, header: '1', column_0, column_1 })
      assert.deepEqual([shown.status, textOf(shown).includes(says)], [400, true], says)
    }
  })

  it('lets 30 bad rows of 2,000 be corrected page by page, and adds all in four presses', async () => {
    const person = await signedIn(service())
    const isBad = (nth: number) => nth % 66 === 0 && nth < 1980
    const rows = Array.from({ length: 2000 }, (_, nth) => (isBad(nth) ? ` ,3,sold` : `Good ${nth},3,`))
    const page = await bring(person, csv(rows))
    assert.equal(await counts(person, page), '1,970 animals; 30 rows left out')
    const names = async () => [...(await inputs(person, page)).values()].filter((name) => name.endsWith('_name'))
    const correct = async (fields: readonly string[]) =>
      press(person, page, 'check', Object.fromEntries(fields.map((name) => [name, `Fixed ${name}`])))
    const first = await names()
    assert.equal(first.length, 25)
    await correct(first)
    assert.equal(await counts(person, page), '1,995 animals; 5 rows left out')
    assert.equal((await names()).length, 5)
    await correct(await names())
    assert.equal(await counts(person, page), '2,000 animals; 0 rows left out')
    const before = (await namesIn(service())).length
    await add(person, page)
    const after = (await namesIn(service())).slice(before)
    assert.deepEqual(
      [after.length, after[0], after[1], after[66]],
      [2000, 'Fixed cell_2_name', 'Good 1', 'Fixed cell_68_name'],
    )
  })

  it('has no more on a page than its form can send, also in letters that take much room, and goes on with the next row', async () => {
    const person = await signedIn(service())
    const unknown = Array.from({ length: 100 }, (_, nth) => `Rex ${nth},Kind ${nth} of,`)
    const page = await bring(person, csv([...unknown, ...Array.from({ length: 25 }, () => `${"'ש!".repeat(59)},,`)]))
    for (let from = 0, pages = 0; from < 25; pages += 1) {
      const shown = await typed(person, `${page}?from=${from}`)
      const lines = Object.keys(shown).filter((name) => name.startsWith('row_'))
      assert.deepEqual([lines[0], pages < 25], [`row_${102 + from}`, true])
      assert.equal((await person.post(page, { ...shown, act: 'check' })).status, 303)
      from += lines.length
    }
  })

  it('takes no row that nobody has corrected, also if it has more cells than the others, until somebody does', async () => {
    const person = await signedIn(service())
    const page = await bring(person, 'name,category,status\nAda,3,sold,,\nRex,the dog,3,sold\n')
    assert.match(textOf(await person.get(page)), /1 animal; 1 row left out.*This row has more cells than the others/)
    const cells = { cell_3_name: 'Rex', cell_3_categoryId: 'the dog', cell_3_status: '3' }
    await press(person, page, 'check', cells)
    assert.match((await counts(person, page)) ?? '', /^1 animal; 1 row/)
    await press(person, page, 'check', {
      ...cells,
      cell_3_name: 'Rex, the dog',
      cell_3_categoryId: '3',
      cell_3_status: 'sold',
    })
    assert.match((await counts(person, page)) ?? '', /^2 animals; 0 rows/)
  })

  it('gives the rows that are left out as a file, with why, which comes back as it is', async () => {
    const person = await signedIn(service())
    const page = await bring(person, 'Preis;Name;Category\n1;Lea;3\n2;;"Fish; big"\n"x ""y""";"a\nb";\n')
    assert.equal(
      (await person.get(`${page}/left-out.csv`)).body,
      'Why it was left out;Preis;name;category\nEnter a name;2;;"Fish; big"\nEnter a category;"x ""y""";"a\nb";\n',
    )
    await add(person, page)
    const { body, headers } = await person.get(`${page}/left-out.csv`)
    assert.match(headers.get('content-disposition')!, /left-out\.csv/)
    const again = await bring(person, body.replace(';;"Fish', ';Max;"Fish').replace('b";', 'b";3'))
    assert.equal(await counts(person, again), '2 animals, 1 new category; 0 rows left out')
    await add(person, again)
    assert.deepEqual((await namesIn(service())).slice(-3), ['Lea', 'Max', 'a\nb'])
    const matched = await bring(person, 'Was;Wie\n3;\n3;Kim\n')
    await person.post(`${matched}/columns`, {
      ...(await person.hiddenFields(`${matched}/columns`)),
      header: '1',
    })
    await person.post(`${matched}/columns`, {
      ...(await person.hiddenFields(`${matched}/columns`)),
      header: '1',
      column_0: 'category',
      column_1: 'name',
    })
    const left = (await person.get(`${matched}/left-out.csv`)).body
    assert.equal(left, 'Why it was left out;category;name\nEnter a name;3;\n')
    const back = await bring(person, left, 'left-out.csv')
    assert.equal(await counts(person, back), '0 animals; 1 row left out', 'its columns are known')
    assert.equal((await person.get(`${back}/left-out.csv`)).body, left, 'one column says why')
  })

  it('asks for each value that the store does not know what becomes of it, and suggests the category that was meant', async () => {
    const { store, account } = service()
    for (const [number, name] of [
      [501n, 'Badgers'],
      [502n, 'Moles'],
    ] as const)
      await store.categories.save({ number, name }, undefined, event(account.id, 'category.added'))
    const person = await signedIn(service())
    const page = await bring(
      person,
      csv(['A,Bagers,', 'B,Slugs,', 'C,Slugs,', 'D,-33,', 'E,44,', 'F,badgers,gone', 'G,Newts!,verkauft']),
    )
    const shown = textOf(await person.get(page))
    assert.match(shown, /Bagers 1 row: line 2 .*Did you mean Badgers \?.*Slugs 2 rows: line 3, 4/)
    const [first = ''] = /<button.*?>/.exec(/<form class="form".*/s.exec((await person.get(page)).body)![0])!
    assert.match(first, /value="check"/, 'the Enter key chooses nothing')
    assert.equal(await counts(person, page), '6 animals, 3 new categories; 1 row left out')
    const names = await inputs(person, page)
    const choice = (label: string) => names.get(`Category ${label}`) ?? names.get(`Status ${label}`)!
    const use = (label: string) => names.get(`Use instead of ${label}`)!
    const decided = {
      [use('Bagers')]: 'Badgers',
      [choice('Slugs')]: 'leave',
      [choice('gone')]: 'sold',
      [use('44')]: 'Moles',
      [choice('-33')]: 'create',
    }
    const wrong = await press(person, page, 'check', { ...decided, [use('44')]: 'Molez' })
    assert.match(textOf(wrong), /No category is named "Molez"\. Did you mean Moles\?/)
    await store.categories.remove({ number: 502n, name: 'Moles' }, event(account.id, 'category.removed'))
    const gone = await press(person, page, 'check', { ...decided, [use('44')]: '502' })
    assert.match(textOf(gone), /No category is named "502"/, 'a number that nobody has named')
    await store.categories.save({ number: 502n, name: 'Moles' }, undefined, event(account.id, 'category.added'))
    await store.categories.save({ number: 503n, name: 'Voles' }, undefined, event(account.id, 'category.added'))
    await press(person, page, 'check', { [use('Slugs')]: 'Voles' })
    const [offered, form] = [await counts(person, page), await typed(person, page)]
    assert.equal(offered, '6 animals, 2 new categories; 1 row left out')
    await store.categories.remove({ number: 503n, name: 'Voles' }, event(account.id, 'category.removed'))
    const nothing = await person.post(page, { ...form, act: 'add' })
    assert.match(textOf(nothing), /6 animals, 3 new categories/)
    const saved = await add(person, page, decided)
    assert.match(saved.location!, /saved=yes/, 'what it had not shown is shown first')
    assert.equal(await counts(person, page), '5 animals, 1 new category; 2 rows left out')
    assert.match((await person.get(`${page}/left-out.csv`)).body, /\nSlugs was left out,B,Slugs,\n/)
    await add(person, page)
    const pets = (await store.pets.list({ limit: 5 })).toReversed()
    const after = await store.categories.names()
    assert.deepEqual(
      pets.map(({ name, categoryId, status }) => [name, after.words(categoryId), status]),
      [
        ['A', 'Badgers', 'available'],
        ['D', '-33', 'available'],
        ['E', 'Moles', 'available'],
        ['F', 'Badgers', 'sold'],
        ['G', 'Newts!', 'sold'],
      ],
    )
  })

  it('asks whether it is the right column if a hundred of its values are unknown', async () => {
    const person = await signedIn(service())
    const page = await bring(person, csv(Array.from({ length: 101 }, (_, nth) => `Rex,Kind of ${nth},`)))
    const shown = await person.get(page)
    assert.match(textOf(shown), /More than 100 values are no category or status\. Is it the right column\?/)
    assert.ok(shown.body.includes(`action="${page}/columns"`))
  })

  it('asks about rows like animals that are here, one for each, with nothing preset', async () => {
    await using petstore = await startPetstore()
    const person = await signedIn(petstore)
    await add(person, await bring(person, csv(Array.from({ length: 12 }, () => 'Goldfish,3,'))))
    const own = (await person.get('/animals.csv')).body
    const [sold] = await petstore.store.pets.list({ limit: 1 })
    const author = { accountId: petstore.account.id, at: 1, via: 'console' } as const
    await petstore.store.pets.update(sold!.id, sold!, { ...sold!, status: 'sold' }, author)
    const same = await bring(person, own)
    assert.match(
      textOf(await person.get(same)),
      /0 animals, 12 here already; 0 rows left out.*Every row of this file is here already Add all once more/,
    )
    const page = await bring(person, csv(Array.from({ length: 30 }, () => 'Goldfish,3,')))
    const shown = await person.get(page)
    assert.match(textOf(shown), /11 of these rows look like animals that are here Add all Add only the other 19/)
    assert.doesNotMatch(shown.body, /checked/)
    for (const each of [same, page])
      assert.match(textOf(await add(person, each)), /Choose what to do with the rows that are here already/)
    assert.equal((await namesIn(petstore)).length, 12)
    await add(person, page, { similar: 'others' })
    assert.equal((await namesIn(petstore)).length, 31)
    assert.match(textOf(await person.get(page)), /19 of 19 animals added/)
  })

  it('adds nothing past the categories that a member may add in a day, and says when that goes on', async () => {
    const { store } = service()
    const person = await signedInAs(service(), 'eager@example.com')
    const { id } = (await store.accounts.accountByEmail('eager@example.com'))!
    for (let nth = 0; nth < CATEGORIES_A_DAY; nth += 1)
      await store.accounts.appendEvent({ ...event(id, 'category.added'), at: Date.now() })
    const limit =
      /A member adds at most 200 categories in 24 hours\. You can go on at 20\d\d-\d\d-\d\d \d\d:\d\d UTC, and a manager can add more now/
    const added = await person.fillIn('/categories/new', { name: 'One more', number: '' })
    assert.match(problemsIn(added.body).join(), limit)
    const page = await bring(person, csv(['Una,Newcomers,']))
    const refused = await add(person, page)
    assert.match(refused.body, /Nothing was added\. Newcomers: A member adds at most 200/)
    const { names } = await store.categories.names()
    assert.ok(!['One more', 'Newcomers'].some((name) => [...names.values()].includes(name)))
  })

  it('gives a new category no number that a row of the file has', async () => {
    const person = await signedIn(service())
    const used = new Set((await service().store.pets.list({ limit: 100 })).map(({ categoryId }) => categoryId))
    const { names } = await service().store.categories.names()
    let free = 1n
    while (names.has(free) || used.has(free)) free += 1n
    const page = await bring(person, csv(['Gus,Mules,', `Hal,${free},`]))
    await add(person, page)
    const after = await service().store.categories.names()
    const shown = (await service().store.pets.list({ limit: 2 })).map((pet) => after.words(pet.categoryId))
    assert.deepEqual(shown, [String(free), 'Mules'])
  })

  it('adds once what is sent twice, in two tabs, with two plans or at the same time: the first plan wins', async () => {
    const [person, other] = [await signedIn(service()), await signedIn(service())]
    const content = `${numbered(700)}Zed,Wolves,\n`
    const before = await namesIn(service())
    const [page, second] = [await bring(person, content), await bring(other, content)]
    const names = await inputs(other, second)
    await press(other, second, 'check', { [names.get('Category Wolves')!]: 'leave' })
    const [form, otherForm] = [await person.hiddenFields(page), await other.hiddenFields(second)]
    const sent = { ...form, act: 'add' }
    const answers = await Promise.all([
      person.post(page, sent),
      person.post(page, sent),
      other.post(second, { ...otherForm, act: 'add' }),
    ])
    for (const { status } of answers) assert.equal(status, 303)
    await person.post(page, sent)
    const [first, ...others] = await Promise.all(
      [page, second].map(async (each) => textOf(await (each === page ? person : other).get(each))),
    )
    const [, total] = /(70[01]) of 70[01] animals added/.exec(first!) ?? []
    assert.ok(
      others.every((text) => text.includes(`${total} of ${total} animals added`)),
      others.join(),
    )
    assert.equal((await namesIn(service())).length, before.length + Number(total))
  })

  it('takes a press that decides something and is sent twice for one', async () => {
    const person = await signedIn(service())
    await add(person, await bring(person, csv(['Guppy,3,'])))
    const page = await bring(person, csv(['Guppy,3,', 'Guppy,3,']))
    const form = { ...(await person.hiddenFields(page)), similar: 'all', act: 'add' }
    for (const { location, body } of await Promise.all([person.post(page, form), person.post(page, form)]))
      assert.equal(location, page, body)
    assert.equal((await namesIn(service())).filter((name) => name === 'Guppy').length, 3)
  })

  it('does not add again what was added, also when it is brought in again', async () => {
    const person = await signedIn(service())
    const content = csv(['Newcomer,3,'])
    const page = await bring(person, content)
    const form = await person.hiddenFields(page)
    await person.post(page, { ...form, act: 'add' })
    const before = await namesIn(service())
    const again = await bring(person, content)
    const shown = await person.get(again)
    assert.match(textOf(shown), /1 of 1 animal added, .* They are not added again\./)
    assert.ok(!shown.body.includes(`action="${again}"`))
    await person.post(again, { ...form, act: 'add' })
    assert.deepEqual(await namesIn(service()), before)
  })

  it('goes on where it was interrupted, with the same rows, whatever has changed since', async () => {
    const person = await signedIn(service())
    const { imports, categories } = service().store
    const content = csv(Array.from({ length: 250 }, (_, index) => (index % 50 === 1 ? ',3,' : `Half ${index},Lynxes,`)))
    const page = await bring(person, content)
    const whole = imports.addRows.bind(imports)
    let batches = 0
    imports.addRows = async (...parameters) => {
      if ((batches += 1) === 2) throw new Error('killed')
      return whole(...parameters)
    }
    try {
      assert.equal((await add(person, page)).status, 500)
    } finally {
      imports.addRows = whole
    }
    const number = (await categories.names()).numberOf('Lynxes')!
    await categories.save({ number, name: 'Bobcats' }, 'Lynxes', event(service().account.id, 'category.renamed'))
    await service().store.pets.create({ name: 'Half 200', categoryId: number, status: 'available' })
    const again = await bring(person, content)
    for (const each of [page, again])
      assert.match(
        textOf(await person.get(each)),
        /50 of 245 animals added, .* The import is running or was interrupted\. .*Add the other 195/,
      )
    await press(person, again, 'add')
    const added = (await service().store.pets.list({ limit: 400 })).filter(({ name }) => name.startsWith('Half'))
    assert.equal(added.length, 246)
    assert.ok(added.every(({ categoryId }) => categoryId === number))
    assert.match(textOf(await person.get(page)), /245 of 245 animals added.*5 rows left out: download them/)
  })

  it('is taken back as a whole, but for animals that were touched since, and may then come in again', async () => {
    const person = await signedIn(service())
    const before = await namesIn(service())
    const page = await bring(person, csv(Array.from({ length: 120 }, (_, nth) => `Temp ${nth},3,`)))
    await add(person, page)
    const [touched] = await service().store.pets.list({ limit: 1 })
    const author = { accountId: service().account.id, at: Date.now(), via: 'console' } as const
    await service().store.pets.update(touched!.id, touched!, { ...touched!, status: 'sold' }, author)
    const [, batch = ''] = /href="(\/animals\/batches\/\d+)">Undo this import/.exec((await person.get(page)).body) ?? []
    assert.match(textOf(await person.get(batch)), /120 animals .*pets\.csv .*120 animals added/)
    await person.submit(batch, batch)
    assert.deepEqual(await namesIn(service()), [...before, 'Temp 119'])
    assert.equal(await counts(person, page), '120 animals; 0 rows left out')
    await add(person, page)
    assert.equal((await namesIn(service())).length, before.length + 121)
  })

  it('adds nothing if what it would add has changed since it was shown', async () => {
    const person = await signedIn(service())
    const page = await bring(person, csv(['Ida,Otters,', 'Jon,3,']))
    const form = { ...(await person.hiddenFields(page)), act: 'add' }
    await service().store.categories.save(
      { number: 77n, name: 'Otters' },
      undefined,
      event(service().account.id, 'category.added'),
    )
    const before = await namesIn(service())
    const answer = await person.post(page, form)
    assert.deepEqual(await namesIn(service()), before)
    assert.match(textOf(answer), /Nothing was added: now 2 animals would be\. .*2 animals; 0 rows left out/)
    await add(person, page)
    assert.deepEqual(await namesIn(service()), [...before, 'Ida', 'Jon'])
  })

  it('takes a plan that a later release has written, or a damaged one, for none; and does not go on with such an import', async () => {
    const person = await signedIn(service())
    const { uploads, imports } = service().store
    const content = csv(['Kit,3,'])
    const page = await bring(person, content)
    const upload = (await uploads.find(page.split('/').at(-1)!, service().account.id, 0))!
    const sealed = upload.plan!
    const later = `${'0'.repeat(16)}{"header":{"mood":1}}`
    for (const plan of [later, sealed.replace('UTF-8', 'UTF-9'), sealed.slice(0, -1), '{"header":1}', 'null', '']) {
      assert.equal(await uploads.savePlan(upload, plan), true)
      Object.assign(upload, { plan })
      assert.equal(await counts(person, page), '1 animal; 0 rows left out', plan)
    }
    const { id } = service().account
    const hash = createHash('sha256').update(content).digest('hex')
    await imports.beginPlanned({ hash, file: 'pets.csv' }, later, 1, { accountId: id, at: 1, via: 'console' })
    const before = await namesIn(service())
    assert.match(textOf(await person.get(page)), /0 of 0 animals added.* later release/)
    await person.post(page, { ...(await person.hiddenFields('/animals/new')), act: 'add' })
    assert.deepEqual(await namesIn(service()), before)
  })

  it('leaves the import of a command to that', async () => {
    const person = await signedIn(service())
    const content = csv(['Mo,3,', 'Lu,3,'])
    const page = await bring(person, content)
    const hash = createHash('sha256').update(content).digest('hex')
    await service().store.imports.begin({ hash, file: '/srv/pets.csv', rowsTotal: 2 }, Date.now(), false)
    const shown = await person.get(page)
    assert.match(textOf(shown), /0 of 2 animals added, .* begun by the command petstore import or an earlier release/)
    assert.ok(!shown.body.includes(`action="${page}"`))
  })

  for (const [name, content, says] of [
    ['empty.csv', '', /The file is empty/],
    ['header.csv', 'name,category\n', /no rows below the names of its columns/],
    [
      'book.xlsx',
      Buffer.from('504b030414000600', 'hex'),
      /The file is a spreadsheet or an archive, not text; .*in Excel as "CSV UTF-8"/,
    ],
    [
      'mac.csv',
      'name,category\rRex,3\rAda,3\r',
      /The file has no lines that can be told apart\. Save the sheet as "CSV UTF-8"/,
    ],
    ['photo.csv', Buffer.from('ffd8ffe000104a464946000101', 'hex'), /The file is not text/],
    [
      'quote.csv',
      'name,category\n"Rex,3\nAda,3\n',
      /a quote is not closed until the end of the file\. .*nothing was written\.(?! --)/,
    ],
    ['wide.csv', `name,category\n${','.repeat(500_000)}\n`, /line 2: the row has no end within 8192 bytes/],
    ['zeros.csv', Buffer.alloc(100_000), /./],
    ['commas.csv', `name,category${',x'.repeat(200)}\n`, /more than 100 columns/],
  ] as const)
    it(`says why it does not take ${name}`, async () => {
      const person = await signedIn(service())
      const sent = await send(person, content, name)
      const shown = sent.location === null ? sent : await person.get(sent.location)
      assert.equal(shown.status, 400)
      assert.match(textOf(shown), says)
      assert.doesNotMatch(textOf(shown), /--/)
    })

  it(`has at most ${UPLOAD_ROWS} animals, and says so`, async () => {
    const person = await signedIn(service())
    const page = await bring(person, numbered(UPLOAD_ROWS + 1))
    const shown = await person.get(page)
    assert.deepEqual([shown.status, /more than 20,000 rows/.test(textOf(shown))], [400, true])
    assert.match(
      textOf(await person.get(await bring(person, numbered(UPLOAD_ROWS, 'Many')))),
      /20,000 animals; 0 rows left out/,
    )
  })

  it('asks for a file, with a token in front of it', async () => {
    const person = await signedIn(service())
    const fields = await person.hiddenFields(PAGE)
    for (const answer of [await person.postFile(PAGE, fields, '', ''), await person.post(PAGE, fields)])
      assert.deepEqual([answer.status, /Choose a file/.test(textOf(answer))], [400, true])
    assert.equal((await person.postFile(PAGE, {}, 'x', 'pets.csv')).status, 403)
    assert.equal((await person.postFile(PAGE, { csrf: 'x'.repeat(43) }, 'x', 'pets.csv')).status, 403)
    for (const type of [
      'multipart/form-data',
      'multipart/form-data; boundary=',
      'multipart/form-data; x=boundary=x',
      `multipart/form-data; boundary=${'x'.repeat(300)}`,
    ])
      assert.equal((await person.post(PAGE, fields, { 'Content-Type': type })).status, 415, type)
    const elsewhere = await person.postFile('/animals/new', fields, 'x', 'pets.csv')
    assert.equal(elsewhere.status, 415, 'no other form has a file')
  })

  it('is read once for a page that is loaded again and again, so that other files have their turn', async () => {
    const person = await signedIn(service())
    const { uploads } = service().store
    const page = await bring(person, numbered(2000, 'Read'))
    const read = uploads.part.bind(uploads)
    let begun = 0
    uploads.part = (id, number) => {
      if (number === 0) begun += 1
      return read(id, number)
    }
    const load = async () => textOf(await person.get(page))
    await load()
    const once = begun
    const shown = await Promise.all([load(), load(), load(), load(), load()])
    uploads.part = read
    assert.ok(shown.every((text) => /2,000 animals; 0 rows/.test(text)))
    assert.ok(begun < 4 * once, `read ${begun} times, where one page takes ${once}`)
  })

  it('is for whoever has brought it in alone', async () => {
    const [person, other] = [await signedIn(service()), await signedInAs(service(), 'other@example.com')]
    const page = await bring(person, csv(['Kim,3,']))
    const form = { ...(await person.hiddenFields(page)), ...(await other.hiddenFields('/animals/new')) }
    for (const answer of [
      await other.get(page),
      await other.post(page, form),
      await other.get(`${PAGE}/${'x'.repeat(43)}`),
    ])
      assert.deepEqual([answer.status, /no longer here/.test(textOf(answer))], [400, true])
    assert.ok(!(await namesIn(service())).includes('Kim'))
  })

  it('leads to the sign-in, and back, if the session has ended; nothing is kept of a file then', async () => {
    const person = await signedIn(service())
    const page = await bring(person, csv(['Lea,Newts,']))
    const form = await person.hiddenFields(page)
    person.cookies.clear()
    const { location } = await person.postFile(PAGE, form, 'x'.repeat(200_000), 'pets.csv')
    assert.equal(location, `/sign-in?next=${encodeURIComponent(PAGE)}`)
    assert.match((await person.get(page)).location!, /^\/sign-in\?next=%2Fanimals%2Fimport%2F/)
  })

  it('reads nothing of a file for somebody who is not signed in', async () => {
    using connection = new RawConnection(service().url)
    const type = 'Content-Type: multipart/form-data; boundary=b'
    connection.send(`POST ${PAGE} HTTP/1.1\r\nHost: localhost\r\n${type}\r\nContent-Length: 1000\r\n\r\n--b`)
    assert.equal((await connection.answer()).status, 303)
  })

  it('stops when its account is removed', async () => {
    const person = await signedInAs(service(), 'gone@example.com')
    const account = (await service().store.accounts.accountByEmail('gone@example.com'))!
    const page = await bring(person, csv(Array.from({ length: 150 }, (_, index) => `Mia ${index},3,`)))
    const form = { ...(await person.hiddenFields(page)), act: 'add' }
    const { imports } = service().store
    const whole = imports.addRows.bind(imports)
    imports.addRows = async (...parameters) => {
      const isAdded = await whole(...parameters)
      imports.addRows = whole
      await service().accounts.remove(account, 'console')
      return isAdded
    }
    await person.post(page, form)
    assert.equal((await namesIn(service())).filter((name) => name.startsWith('Mia')).length, 50)
    assert.match((await person.get(page)).location!, /^\/sign-in/)
  })
})

describe('A file with more new categories than the store has room for', () => {
  it('says which one it could not create, and adds no animal', async () => {
    await using petstore = await startPetstore()
    const { categories } = petstore.store
    const added = event('', 'category.added')
    for (let number = 1; number < CATEGORIES_MOST; number += 1)
      await categories.save({ number: BigInt(number), name: `Kind ${number}` }, undefined, added)
    const person = await signedIn(petstore)
    const page = await bring(person, csv(['Ned,Pigs,', 'Ora,Rats,']))
    const answer = await add(person, page)
    assert.match(textOf(answer), /Nothing was added\. Rats: At most 1000 categories can have a name/)
    assert.deepEqual(await namesIn(petstore), [])
  })
})

for (const engine of ENGINES) {
  describe(`A file that was brought in on ${engine.name}`, () => {
    it('is added once by two instances that get the same form, and is gone after an hour', async () => {
      await using database = await engine.newDatabase()
      let now = Date.parse('2026-11-15T09:24:00Z')
      const options = { database: database.url, clock: () => now, env: { PETSTORE_SIGNUP: 'closed' } }
      await using one = await startPetstore(options)
      await using two = await startPetstore(options)
      const person = await signedIn(one)
      const page = await bring(person, numbered(1500))
      const form = { ...(await person.hiddenFields(page)), act: 'add' }
      const elsewhere = (path: string, fields?: Record<string, string>) =>
        fetch(two.url + path, {
          redirect: 'manual',
          headers: { Cookie: person.cookie, Accept: 'text/html' },
          ...(fields && { method: 'POST', body: new URLSearchParams(fields) }),
        })
      assert.match(await (await elsewhere(page)).text(), /1,500 animals; 0 rows/)
      const answers = await Promise.all([person.post(page, form), elsewhere(page, form)])
      assert.deepEqual(
        answers.map(({ status }) => status),
        [303, 303],
      )
      assert.equal((await namesIn(one)).length, 1500)
      now += UPLOAD_KEPT_MS
      assert.match(await (await elsewhere(page)).text(), /no longer here/)
    })
  })
}
