// Animals on the wire: a NewPet as JSON, and a Pet from JSON, with exact integers both ways.
import { type NewPet, type Pet, PET_FIELDS } from './contract.ts'
import type { Json } from './exact-json.ts'

const FIELDS = Object.entries(PET_FIELDS)

/** By hand, since JSON.stringify takes no bigint. A field that is left out stays out, and so does one that is no field of an animal. */
export function renderNewPet(newPet: NewPet): string {
  const parts = FIELDS.filter(([name]) => name !== 'id').flatMap(([name, { type, always }]) => {
    const value = newPet[name as keyof NewPet]
    if (value === undefined && !always) return []
    const json = type === 'bigint' ? String(exactInteger(name, value as bigint)) : JSON.stringify(value)
    return json === undefined ? [] : [`"${name}":${json}`]
  })
  return `{${parts.join(',')}}`
}

/** Refuses a number that may have been rounded before it came here. */
export function exactInteger(name: string, value: number | bigint): bigint {
  if (typeof value === 'bigint') return value
  if (Number.isSafeInteger(value)) return BigInt(value)
  throw new TypeError(
    `${name} must be a bigint or a safe integer, got ${typeof value === 'number' ? `the number ${value}` : typeof value}.`,
  )
}

/** Returns undefined for anything that is not an animal. Fields that this version does not know are left out. */
export function parsePet(value: Json): Pet | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const pet: Record<string, Json> = {}
  for (const [name, { type, always }] of FIELDS) {
    const field = value[name]
    if (field === undefined && !always) continue
    // A later service may know more statuses; an animal with one of them is still an animal.
    if (typeof field !== type) return undefined
    pet[name] = field!
  }
  return pet as object as Pet
}

export function parsePets(value: Json): Pet[] | undefined {
  if (!Array.isArray(value)) return undefined
  const pets = value.map(parsePet)
  return pets.every((pet) => pet !== undefined) ? pets : undefined
}
