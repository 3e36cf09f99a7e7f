// Bringing in a file of animals in the console: seen before anything is written, added once, by the rules of the command.
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import { CATEGORIES_A_DAY, CATEGORIES_MOST, UPLOAD_ROWS } from '../../src/contract/limits.ts'
import { labelOf, SHOWN_FIELDS } from '../../src/contract/pet-words.ts'
import { checkFile } from '../../src/console/animals/import-file.ts'
import { UPLOAD_KEPT_MS } from '../../src/store/uploads.ts'
import { ENGINES } from '../harness/databases/engines.ts'
import { RawConnection } from '../harness/connections/raw-http.ts'
import {
  type Answered,
  type ConsoleClient,
  inWords,
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
const csv = (rows: readonly string[]) => `name,category,status\n${rows.join('\n')}\n`
const numbered = (count: number) => csv(Array.from({ length: count }, (_, index) => `Rex ${index},3,`))

describeOnSqlite('Bringing in a file', (service) => {
  it('shows what would be added, creates the categories that were ticked, adds, and names who did it', async () => {
    const person = await signedIn(service())
    const before = await namesIn(service())
    const page = await bring(
      person,
      csv(['Ada,Ferrets,Sold', 'Bob,3,', 'Cy, ferrets ,gone', ',3,', 'Dan,Hamsters,']),
      'my & <b>.csv',
    )
    const shown = await person.get(page)
    assert.equal(shown.status, 200)
    const text = textOf(shown)
    assert.match(shown.body, /<bdi>my &amp; &lt;b&gt;\.csv<\/bdi>/)
    assert.match(text, /5 rows: 1 good, 2 with new categories, 2 bad\./)
    assert.match(text, /New categories Ferrets, Hamsters \. Rows left out without them: 2\./)
    const rows = [
      SHOWN_FIELDS.map((name) => labelOf(name)).join(' '),
      ...[
        { name: 'Ada', status: 'Sold', categoryId: 'Ferrets (new)' },
        { name: 'Bob', status: 'Available', categoryId: '3' },
        { name: 'Dan', status: 'Available', categoryId: 'Hamsters (new)' },
      ].map((row) => inWords(row, 'alone')),
    ]
    assert.ok(text.includes(`The first 3 ${rows.join(' ')} Left out: 2 bad rows `), text)
    assert.match(text, /Line Problem 4 Choose one of Available, Reserved, Sold\. 5 Enter a name\.$/)
    assert.deepEqual(await namesIn(service()), before, 'nothing is written before')
    assert.equal((await service().store.categories.names()).numberOf('Ferrets'), undefined)

    const { location } = await person.fillIn(page, { create: '3' })
    assert.equal(location, page)
    assert.deepEqual(await namesIn(service()), [...before, 'Ada', 'Bob', 'Dan'])
    const done = await person.get(page)
    assert.match(textOf(done), /3 of 3 rows were added, .* They are not added again\. Show the animals/)
    assert.ok(!done.body.includes(`action="${page}"`), 'no button adds them once more')
    const [dan] = await service().store.pets.list({ limit: 1 })
    const names = await service().store.categories.names()
    assert.equal(names.names.get(dan!.categoryId), 'Hamsters')
    assert.deepEqual((await service().store.pets.addition(dan!.id))?.by, service().account.id)
    assert.match((await person.get(`/animals/${dan!.id}`)).body, /Added <span class="quiet-text">You, /)
    const trail = await service().store.accounts.auditTrail(service().account.id, 20)
    assert.deepEqual(
      trail.flatMap(({ action, subject }) => (action === 'category.added' ? [subject.split(' ')[0]] : [])),
      ['Hamsters', 'Ferrets'],
    )
  })

  it('looks for no similar name in any of its rows: a thousand names are many', async () => {
    const { store, account } = service()
    await store.categories.save({ number: 660n, name: 'Badgers' }, undefined, event(account.id, 'category.added'))
    const page = await bring(await signedIn(service()), csv(['Ada,Bagers,', 'Bob,badgers,']))
    const upload = await store.uploads.find(page.split('/').at(-1)!, account.id, 0)
    const names = await store.categories.names()
    const rows = (
      await Array.fromAsync((await checkFile(store.uploads, upload!, names, new AbortController().signal)).rows(names))
    ).flat()
    assert.match(names.unknown('Bagers'), /Did you mean Badgers/)
    assert.match('problem' in rows[0]! ? rows[0].problem : '', /^No category is named "Bagers"\. Add it/)
    assert.partialDeepStrictEqual(rows[1], { pet: { categoryId: 660n } })
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
    const refused = await person.post(page, { ...(await person.hiddenFields(page)), create: '1' })
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
    await person.fillIn(page, { create: '2' })
    const after = await service().store.categories.names()
    const shown = (await service().store.pets.list({ limit: 2 })).map((pet) => after.words(pet.categoryId))
    assert.deepEqual(shown, [String(free), 'Mules'])
  })

  it('leaves out the rows of new categories that were not ticked, and says so before', async () => {
    const person = await signedIn(service())
    const before = await namesIn(service())
    const page = await bring(person, csv(['Eve,Geese,', 'Flo,3,']))
    assert.match(
      textOf(await person.get(page)),
      /New categories Geese \. Rows left out without them: 1\. They then need a file of their own\./,
    )
    await person.fillIn(page)
    assert.deepEqual(await namesIn(service()), [...before, 'Flo'])
    assert.equal((await service().store.categories.names()).numberOf('Geese'), undefined)
  })

  it('creates no category by an outdated form, and says what to do with the rows that are left', async () => {
    const person = await signedIn(service())
    const page = await bring(person, csv(['Ian,Yaks,', 'Joy,3,']))
    const form = await person.hiddenFields(page)
    assert.match(textOf(await person.post(page, { ...form, create: '3' })), /Nothing was added: now 2 rows can be\./)
    await person.post(page, form)
    const before = await namesIn(service())
    assert.equal((await person.post(page, { ...form, create: '2' })).location, page)
    assert.deepEqual(await namesIn(service()), before)
    assert.equal((await service().store.categories.names()).numberOf('Yaks'), undefined)
    assert.match(
      textOf(await person.get(page)),
      /1 of 1 row were added, .*Left out, because no category has their name: Yaks *\. Bring in the others as a file of their own\./,
    )
  })

  it('sends nobody to add rows twice if other rows are good after an interruption', async () => {
    const person = await signedIn(service())
    const content = csv(['Kit,3,', 'Lou,3,', 'Max,Emus,'])
    const page = await bring(person, content)
    const hash = createHash('sha256').update(content).digest('hex')
    await service().store.imports.begin({ hash, file: 'pets.csv', rowsTotal: 2 }, Date.now(), false)
    await person.fillIn('/categories/new', { name: 'Emus', number: '' })
    const shown = await person.get(page)
    assert.match(
      textOf(shown),
      /0 of 2 rows were added, .* can’t go on, because 3 rows can be added now\. Bring in the others/,
    )
    assert.doesNotMatch(textOf(shown), /--again/, 'it begins with the first row')
  })

  it('adds once what is sent twice, in two tabs or at the same time', async () => {
    const [person, other] = [await signedIn(service()), await signedIn(service())]
    const content = numbered(700)
    const before = await namesIn(service())
    const [page, second] = [await bring(person, content), await bring(other, content)]
    const [form, otherForm] = [await person.hiddenFields(page), await other.hiddenFields(second)]
    const answers = await Promise.all([person.post(page, form), person.post(page, form), other.post(second, otherForm)])
    for (const { status } of answers) assert.equal(status, 303)
    await person.post(page, form)
    assert.equal((await namesIn(service())).length, before.length + 700)
  })

  it('does not add again what was added, also when it is brought in again', async () => {
    const person = await signedIn(service())
    const content = csv(['Goldfish,3,'])
    const page = await bring(person, content)
    const form = await person.hiddenFields(page)
    await person.post(page, form)
    const before = await namesIn(service())
    const again = await bring(person, content)
    const shown = await person.get(again)
    assert.match(textOf(shown), /1 of 1 row were added, .* They are not added again\./)
    assert.ok(!shown.body.includes(`action="${again}"`))
    await person.post(again, form)
    assert.deepEqual(await namesIn(service()), before)
  })

  it('says that a file of this name, or another one today, was brought in before, whose rows would be added again', async () => {
    const person = await signedIn(service())
    const page = await bring(person, csv(['Lou,3,', ',3,']), 'stock.csv')
    assert.doesNotMatch(textOf(await person.get(page)), /A file of this name/)
    await person.fillIn(page)
    const corrected = await bring(person, csv(['Lou,3,', 'Mia,3,']), 'stock.csv')
    assert.match(
      textOf(await person.get(corrected)),
      /A file of this name was brought in before, .*: 1 row\. Rows that this one has too would be added again\./,
    )
    const renamed = await bring(person, csv(['Lou,3,', 'Mia,3,', 'Ned,3,']), 'corrected.csv')
    assert.match(textOf(await person.get(renamed)), /stock\.csv was brought in before, .*: 1 row\. Rows that/)
  })

  it('says how far an interrupted import has come, and goes on from there', async () => {
    const person = await signedIn(service())
    const content = csv(Array.from({ length: 250 }, (_, index) => `Half ${index},3,`))
    const page = await bring(person, content)
    const form = await person.hiddenFields(page)
    const { imports } = service().store
    const whole = imports.addRows.bind(imports)
    let batches = 0
    imports.addRows = async (...parameters) => {
      if ((batches += 1) === 2) throw new Error('killed')
      return whole(...parameters)
    }
    try {
      assert.equal((await person.post(page, form)).status, 500)
    } finally {
      imports.addRows = whole
    }
    const again = await bring(person, content)
    for (const each of [page, again])
      assert.match(
        textOf(await person.get(each)),
        /50 of 250 rows were added, .* The import is running or was interrupted\. .*Add the other 200/,
      )
    await person.fillIn(again)
    assert.equal((await namesIn(service())).filter((name) => name.startsWith('Half')).length, 250)
    assert.match(textOf(await person.get(page)), /250 of 250 rows were added/)
  })

  it('adds nothing if what it would add has changed since it was shown', async () => {
    const person = await signedIn(service())
    const page = await bring(person, csv(['Ida,Otters,', 'Jon,3,']))
    const form = await person.hiddenFields(page)
    await service().store.categories.save(
      { number: 77n, name: 'Otters' },
      undefined,
      event(service().account.id, 'category.added'),
    )
    const before = await namesIn(service())
    const answer = await person.post(page, form)
    assert.deepEqual(await namesIn(service()), before)
    assert.match(textOf(answer), /Nothing was added: now 2 rows can be\. .*2 rows: 2 good, 0 bad\./)
    assert.equal((await person.post(page, { ...form, create: '1' })).status, 400)
    await person.post(page, { ...form, create: '2' })
    assert.deepEqual(
      await namesIn(service()),
      [...before, 'Ida', 'Jon'],
      'a colleague has created the category meanwhile',
    )
  })

  const utf16 = (text: string) => Buffer.from(`\uFEFF${text}`, 'utf16le')
  for (const [name, content, says] of [
    ['empty.csv', '', /the header has no column name/],
    ['header.csv', 'name,category\n', /has a header, but no rows/],
    ['other.csv', 'Nom;Prix\nRex;3\n', /line 1: the header has no column name and categoryId; got "Nom;Prix"\./],
    [
      'one.csv',
      'name|category\nRex|3\n',
      /as one column \(a first line such as sep=\| names another delimiter\)\. .*Nothing was written\. (?!--)/,
    ],
    [
      'book.xlsx',
      Buffer.from('504b030414000600', 'hex'),
      /The file is a spreadsheet or an archive, not text; .*in Excel as "CSV UTF-8"/,
    ],
    ['photo.csv', Buffer.from('ffd8ffe000104a464946000101', 'hex'), /the header has no column/],
    [
      'quote.csv',
      'name,category\n"Rex,3\nAda,3\n',
      /a quote is not closed until the end of the file\. .*nothing was written\.(?! --)/,
    ],
    ['wide.csv', `name,category\n${','.repeat(500_000)}\n`, /line 2: the row has no end within 8192 bytes/],
    ['zeros.csv', Buffer.alloc(100_000), /./],
    ['commas.csv', `name,category${','.repeat(60_000)}\n`, /more than 1000 columns/],
  ] as const)
    it(`says why it does not take ${name}`, async () => {
      const person = await signedIn(service())
      const sent = await send(person, content, name)
      const shown = sent.location === null ? sent : await person.get(sent.location)
      assert.equal(shown.status, 400)
      assert.match(textOf(shown), says)
      assert.doesNotMatch(textOf(shown), /--/)
    })

  it('takes semicolons, UTF-16, other columns and a path, as offices and browsers send them', async () => {
    const person = await signedIn(service())
    const page = await bring(
      person,
      utf16('Name;Preis;Category\r\nZoë 🐈;9,50;3\r\n=1+1;<b>;3\r\n'),
      'C:\\fakepath\\büro.csv',
    )
    const shown = await person.get(page)
    assert.match(shown.body, /<h1><bdi>büro\.csv<\/bdi>/)
    assert.match(textOf(shown), /2 rows: 2 good, 0 bad\. .*left out, such as "Preis" \. /)
    const rows = ['Zoë 🐈', '=1+1'].map((name) => inWords({ name, status: 'Available', categoryId: '3' }, 'alone'))
    assert.ok(textOf(shown).includes(rows.join(' ')))
    await person.fillIn(page)
    assert.deepEqual((await namesIn(service())).slice(-2), ['Zoë 🐈', '=1+1'])
  })

  it(`has at most ${UPLOAD_ROWS} animals, and names the command for more`, async () => {
    const person = await signedIn(service())
    const page = await bring(person, numbered(UPLOAD_ROWS + 1))
    const shown = await person.get(page)
    assert.deepEqual([shown.status, /petstore import\. .*more than 20,000 rows/.test(textOf(shown))], [400, true])
    assert.match(textOf(await person.get(await bring(person, numbered(UPLOAD_ROWS)))), /20,000 rows: 20,000 good/)
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
    const page = await bring(person, numbered(2000))
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
    assert.ok(shown.every((text) => /2,000 rows: 2,000 good/.test(text)))
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
    const form = await person.hiddenFields(page)
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
    const answer = await person.fillIn(page, { create: '2' })
    assert.match(textOf(answer), /Nothing was added\. Rats: At most 1000 categories can have a name\./)
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
      const form = await person.hiddenFields(page)
      const elsewhere = (path: string, fields?: Record<string, string>) =>
        fetch(two.url + path, {
          redirect: 'manual',
          headers: { Cookie: person.cookie, Accept: 'text/html' },
          ...(fields && { method: 'POST', body: new URLSearchParams(fields) }),
        })
      assert.match(await (await elsewhere(page)).text(), /1,500 rows: 1,500 good/)
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
