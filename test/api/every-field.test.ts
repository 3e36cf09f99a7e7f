// No part of the service forgets a field: animals made from the table of fields go through each of them.
import { eventInWords } from '../../src/console/animals/animal-history.ts'
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Petstore as Client } from '../../client/src/petstore.ts'
import { asJson, asTexts, barePet, samplePet, variants } from '../harness/databases/sample-pet.ts'
import { ENGINES, type TestDatabase } from '../harness/databases/engines.ts'
import { CSV_COLUMNS } from '../../src/contract/pet-csv.ts'
import { readConfig } from '../../src/config.ts'
import { FIELD_LIST, FIELD_NAMES, type NewPet, NewPetSchema, type Pet, PetSchema } from '../../src/contract/pets.ts'
import { fingerprintOf, idempotencyFor } from '../../src/store/idempotency.ts'
import { openStore } from '../../src/store/opening/open-store.ts'
import { kindOf } from '../../src/store/records.ts'
import type { Store } from '../../src/store/store.ts'
import { signedIn } from '../harness/connections/console-client.ts'
import { describeOnSqlite, describeService } from '../harness/harness.ts'
import { petstore } from '../harness/programs/in-process-command.ts'
import { event } from '../harness/databases/sample-rows.ts'

/** Both go through every part: one with all fields, one with only those that an animal must have. */
const ANIMALS = { 'every field': samplePet, 'no optional field': barePet }
const PETS = kindOf('pets')

describe('The table of fields', () => {
  it('has two examples of each field that differ and are valid, the second not its default', () => {
    for (const { name, schema, check, default: filledIn } of FIELD_LIST) {
      assert.notEqual(schema.examples[0], schema.examples[1], name)
      assert.notEqual(schema.examples[1], filledIn, name)
      assert.ok(check(samplePet[name]), name)
    }
  })

  it('is what both schemas describe', () => {
    assert.deepEqual(Object.keys(NewPetSchema.properties), FIELD_NAMES)
    assert.deepEqual(Object.keys(PetSchema.properties), ['id', ...FIELD_NAMES])
  })

  it('is named by the documentation of files', () => {
    const text = readFileSync(new URL('../../docs/data.md', import.meta.url), 'utf8')
    assert.ok(text.includes(`\`${CSV_COLUMNS.join()}\``), CSV_COLUMNS.join())
    const [header = ''] = /\*\*CSV\*\* starts with a header:.*/.exec(text) ?? []
    for (const column of CSV_COLUMNS) assert.ok(header.includes(`\`${column}\``), column)
  })

  it('leaves the fingerprints of version 1.0.0 valid', () => {
    const rex: NewPet = { name: 'Rex', categoryId: 3n, status: 'available' }
    assert.equal(fingerprintOf(rex).toString('hex'), FINGERPRINT_OF_REX)
  })
})

const FINGERPRINT_OF_REX = '6bd8aa6b4d9dd914ac3e0af300dce5a06105615449a23f000de33de53da64754'

for (const engine of ENGINES) {
  describe(`Every field, in the store on ${engine.name}`, { concurrency: false }, () => {
    let database: TestDatabase
    let store: Store
    let keys = 0
    before(async () => {
      database = await engine.newDatabase()
      store = await openStore(readConfig({ database: database.url }, {}).database)
    })
    after(async () => {
      await store.close()
      await database[Symbol.asyncDispose]()
    })

    const newest = (limit: number) => store.pets.list({ limit })
    const once = (pet: NewPet, key = String((keys += 1))) => idempotencyFor('acct_1', key, pet, 1_790_000_000_000)
    const added = async (pet: NewPet): Promise<Pet> => {
      const created = await store.pets.create(pet)
      assert.ok('pet' in created)
      return created.pet
    }

    /** Each way to add animals. */
    const WAYS: Record<string, (pet: NewPet) => Promise<unknown>> = {
      create: (pet) => store.pets.create(pet),
      'several creates at a time': (pet) => Promise.all([store.pets.create(pet), store.pets.create(pet)]),
      'create with an idempotency key': (pet) => store.pets.create(pet, once(pet)),
      'createMany of one': (pet) => store.pets.createMany([pet]),
      'createMany of several': (pet) => store.pets.createMany([pet, pet]),
      async 'an import'(pet) {
        const file = { hash: `hash ${(keys += 1)}`, file: 'pets.csv', rowsTotal: 1 }
        await store.imports.begin(file, 1, false)
        assert.equal(await store.imports.addRows({ ...file, rowsDone: 0 }, [pet], 1), true)
      },
      async 'a copied record'(pet) {
        const { id } = await added(pet)
        const [record] = await store.records.read(PETS, { id: id - 1n }, 1)
        const newId = id + 1000n
        await store.records.write(PETS, [{ ...record!, id: newId }])
        await store.records.raiseLastId(PETS, newId)
      },
    }
    for (const [way, add] of Object.entries(WAYS)) {
      for (const [which, pet] of Object.entries(ANIMALS)) {
        it(`is kept by ${way}, of an animal with ${which}`, async () => {
          await add(pet)
          const [listed] = await newest(1)
          assert.deepEqual(listed, { id: listed!.id, ...pet })
          assert.deepEqual(await store.pets.get(listed.id), listed)
        })
      }
    }

    it('is in the answer to a create, first and repeated', async () => {
      for (const pet of Object.values(ANIMALS)) {
        const idempotency = once(pet)
        for (const outcome of ['created', 'replayed']) {
          const created = await store.pets.create(pet, idempotency)
          assert.ok('pet' in created)
          assert.deepEqual(created, { outcome, pet: { id: created.pet.id, ...pet } })
        }
        assert.deepEqual(await added(pet), { id: (await newest(1))[0]!.id, ...pet })
      }
    })

    for (const { field, pet } of variants) {
      const how = pet[field] === undefined ? 'has none' : 'has another'
      it(`tells an animal from one that ${how}: ${field}`, async () => {
        assert.deepEqual(await store.pets.create(pet, { ...once(pet), key: await keyOf(samplePet) }), {
          outcome: 'mismatch',
        })
        const stored = await added(samplePet)
        const conflict = { outcome: 'conflict', pet: stored }
        const refused = event(`acct_refused_${field}_${how}`)
        assert.deepEqual(await store.pets.update(stored.id, pet, barePet, refused), conflict)
        assert.deepEqual(await store.pets.get(stored.id), stored)
        assert.deepEqual(await store.accounts.auditTrail(refused.accountId, 9), [], 'nor is it recorded')
      })

      it(`can be changed to one that ${how}, and back: ${field}`, async () => {
        const { id } = await added(samplePet)
        for (const [from, to] of [
          [samplePet, pet],
          [pet, samplePet],
        ] as const) {
          assert.deepEqual(await store.pets.update(id, from, to, event('acct_1')), { outcome: 'updated' })
          assert.deepEqual(await store.pets.get(id), { id, ...to })
        }
      })
    }

    async function keyOf(pet: NewPet): Promise<string> {
      const idempotency = once(pet)
      await store.pets.create(pet, idempotency)
      return idempotency.key
    }
  })
}

for (const workers of ['0', '2']) {
  const describeIt = workers === '0' ? describeService : describeOnSqlite
  describeIt(
    `Every field, with ${workers} workers`,
    (service) => {
      for (const [which, pet] of Object.entries(ANIMALS)) {
        it(`goes through the API, of an animal with ${which}`, async () => {
          const answer = (await (await service().add(asJson(pet))).json()) as { id: number }
          assert.deepEqual(answer, { id: answer.id, ...asJson(pet) })
          assert.deepEqual(await (await service().call(`/pets/${answer.id}`)).json(), answer)
          assert.deepEqual(await (await service().call('/pets?limit=1')).json(), [answer])
          const other = await service().add(asJson(pet), { 'Idempotency-Key': `${workers} ${which}` })
          assert.deepEqual(await other.json(), { ...answer, id: answer.id + 1 })
        })

        it(`goes through the client, of an animal with ${which}`, async () => {
          const client = new Client({ apiKey: service().key, baseUrl: `${service().url}/v1`, onDeprecation: () => {} })
          const made = await client.createPet(pet)
          assert.deepEqual(made, { id: made.id, ...pet })
          assert.deepEqual(await client.getPet(made.id), made)
          assert.deepEqual((await client.listPets({ limit: 1 })).pets, [made])
        })

        it(`goes through the console, of an animal with ${which}`, async () => {
          const { store } = service()
          const person = await signedIn(service())
          const { location } = await person.submit('/animals/new', '/animals/new', asTexts(pet))
          const id = BigInt(/added=(\d+)/.exec(location ?? '')![1]!)
          assert.deepEqual(await store.pets.get(id), { id, ...pet })

          const form = (await person.get(`/animals/${id}`)).body
          const shown = fieldsOf(form)
          assert.deepEqual(Object.fromEntries(FIELD_NAMES.map((name) => [name, shown[name]])), asTexts(pet))
          await person.submit(`/animals/${id}`, `/animals/${id}`, { ...shown, name: 'Renamed' })
          assert.deepEqual(await store.pets.get(id), { id, ...pet, name: 'Renamed' }, 'the others stay')

          const row = (await person.get('/animals?status=all')).body
            .split('<tr')
            .find((part) => part.includes('Renamed'))!
          for (const [name, text] of Object.entries(asTexts(pet)))
            if (name !== 'name') assert.match(row, new RegExp(text, 'i'), `${name} is listed`)
        })
      }

      for (const { field, pet } of variants) {
        it(`can be changed in the console alone, and the log says so: ${field} to ${pet[field] ?? 'none'}`, async () => {
          const { store, account } = service()
          const created = await store.pets.create(samplePet)
          assert.ok('pet' in created)
          const { id } = created.pet
          const person = await signedIn(service())
          await person.submit(`/animals/${id}`, `/animals/${id}`, asTexts(pet))
          assert.deepEqual(await store.pets.get(id), { id, ...pet })
          const [newest] = await store.accounts.auditTrail(account.id, 1)
          const words = new RegExp(`^[^;]*${asTexts(samplePet)[field]} → ${asTexts(pet)[field] || '–'}$`, 'i')
          assert.match(eventInWords(newest!).replaceAll('"', ''), words)
        })
      }
    },
    { env: workers === '0' ? {} : { PETSTORE_WORKERS: workers } },
  )
}

function withoutId(pet: Pet): NewPet {
  const { id: _id, ...newPet } = pet
  return newPet
}

/** What a browser would send of the form as it is. */
function fieldsOf(page: string): Record<string, string> {
  const inputs = page.matchAll(/<input id="(\w+)" name="\w+" type="\w+" value="([^"]*)"/g)
  const choices = page.matchAll(/<select id="(\w+)"[^]*?<option value="([^"]*)" selected>/g)
  return Object.fromEntries([...inputs, ...choices].map(([, name, value]) => [name, value]))
}

describe('Every field, in files', () => {
  const both = Object.values(ANIMALS)
  const stored = async (url: string) => {
    const store = await openStore(readConfig({ database: url }, {}).database)
    try {
      return (await store.pets.list({ limit: 100 })).map((pet) => withoutId(pet))
    } finally {
      await store.close()
    }
  }
  const run = async (...words: string[]) => {
    const { code, stderr } = await petstore(words)
    assert.equal(code, 0, stderr)
  }

  for (const engine of ENGINES) {
    it(`survives export, import and copy from ${engine.name}`, async () => {
      await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
      await using source = await engine.newDatabase()
      const store = await openStore(readConfig({ database: source.url }, {}).database)
      await store.pets.createMany(both)
      await store.close()
      for (const format of ['csv', 'jsonl']) {
        await using target = await engine.newDatabase()
        const file = join(folder.path, `animals.${format}`)
        await run('export', file, '--database', source.url)
        await run('import', file, '--database', target.url)
        assert.deepEqual(await stored(target.url), both.toReversed(), format)
      }
      for (const other of ENGINES) {
        await using target = await other.newDatabase()
        await run('copy', '--from', source.url, '--to', target.url)
        assert.deepEqual(await stored(target.url), both.toReversed(), `copied to ${other.name}`)
      }
    })
  }

  it('survives backup and restore', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'petstore-test-'))
    const [url, restored] = ['one.db', 'two.db'].map((name) => `sqlite:${join(folder.path, name)}`) as [string, string]
    const store = await openStore(readConfig({ database: url }, {}).database)
    await store.pets.createMany(both)
    await store.close()
    await run('backup', join(folder.path, 'backup.db'), '--database', url)
    await run('restore', join(folder.path, 'backup.db'), '--database', restored)
    assert.deepEqual(await stored(restored), both.toReversed())
  })
})
