// What an email address, a password and a key's name must be, and why a change of an account or a key is refused.
import { FieldProblem } from '../contract/errors.ts'
import { ACTIVE_KEYS_MOST, PERSON_NAME_MAX_LENGTH } from '../contract/limits.ts'
import { foldName, INVISIBLE } from '../contract/text/fold-name.ts'
import type { Account } from '../store/account-store.ts'
import { FIRST_RUN_EMAIL } from '../store/people-store.ts'
import type { Store } from '../store/store.ts'
import { isExpired } from './api-keys.ts'
import { isTooLongPassword, passwordProblem } from './passwords.ts'

const EMAIL_MAX_LENGTH = 254
const EMAIL_SHAPE = /^[^\s@\p{Cc}]+@[^\s@\p{Cc}]+$/u
export const KEY_NAME_MAX_LENGTH = 100

export class EmailTaken extends FieldProblem {
  constructor(email: string) {
    super('email', `There is already an account for ${email}.`)
  }
}

export class NameTaken extends FieldProblem {
  constructor(name: string) {
    super('name', `Somebody here is called ${name} already: add the first letter of the last name.`)
  }
}

/** The account was removed between its look-up and the change. */
export class NoAccount extends FieldProblem {
  constructor({ email }: Account) {
    super('', `There is no account for ${email}: it was removed meanwhile.`)
  }
}

export const KEY_EXISTS = new FieldProblem('', 'This form has already created its key.')

/** The key was renamed, or removed with its account, since the form was opened. */
export const KEY_CHANGED = new FieldProblem(
  'name',
  'The key was renamed while you were editing. Rename it again to replace that name.',
)

/** The link was used, has expired or was voided meanwhile. */
export const NO_LINK = new FieldProblem('', 'The link does not work any more.')

export const RESERVED = new FieldProblem(
  'email',
  `${FIRST_RUN_EMAIL} is reserved for the key of a first start: nobody signs in with it. Use another email address.`,
)

export const LAST_MANAGER = new FieldProblem('', 'This is the only manager. Make another person a manager first.')

export const NO_RIGHT_TO_KEYS = new FieldProblem('', 'A manager has taken away the right to keys from this account.')

export const TOO_MANY_KEYS = new FieldProblem(
  '',
  `The account has ${ACTIVE_KEYS_MOST} active keys or more. Revoke one that is no longer used first.`,
)

/** Returns whether the email address or the password is longer than any account's. The limits are public. */
export function isTooLongToSignIn(email: string, password: string): boolean {
  return Math.min(email.length, email.normalize().length) > EMAIL_MAX_LENGTH || isTooLongPassword(password)
}

/** `shown` replaces the message that says what is allowed. */
export function emailProblem(email: string, shown?: string): FieldProblem | undefined {
  // Two accounts must not look the same to a manager.
  const isVisible = email.search(INVISIBLE) === -1
  if (foldName(email) === FIRST_RUN_EMAIL) return RESERVED
  if (email.length <= EMAIL_MAX_LENGTH && EMAIL_SHAPE.test(email) && isVisible && email.isWellFormed()) return undefined
  return new FieldProblem(
    'email',
    shown ??
      `The email address must have the form name@host, at most ${EMAIL_MAX_LENGTH} characters and none that is invisible, got ${JSON.stringify(email.slice(0, 60))}.`,
  )
}

/** What the console itself says in the place of a name, folded, without spaces. */
const MISLEADING = /^(?:you|everyone|onthecommandline|notrecorded)$|deletedaccount$|\(left\)$/

export function nameProblem(name: string): FieldProblem | undefined {
  const { length } = [...name]
  const problem = (message: string) => new FieldProblem('name', message)
  if (length > PERSON_NAME_MAX_LENGTH)
    return problem(`A name has at most ${PERSON_NAME_MAX_LENGTH} characters, got ${length}.`)
  const folded = foldName(name)
  if (folded === '') return problem('Enter a name.')
  if (/[\p{Cc}\p{Bidi_Control}]/u.test(name) || !name.isWellFormed())
    return problem('The name has characters that nobody can see. Type it again.')
  if (folded.includes('@')) return problem('Enter a name, not an email address.')
  if (!MISLEADING.test(folded.replaceAll(' ', ''))) return undefined
  return problem(`${JSON.stringify(name)} would be misunderstood. Choose another name.`)
}

type KnownAccounts = Pick<Store['accounts'], 'accountByEmail' | 'accountByName'>

export async function newNameProblem(accounts: KnownAccounts, name: string): Promise<FieldProblem | undefined> {
  return nameProblem(name) ?? ((await accounts.accountByName(name)) && new NameTaken(name))
}

/** Resolves with all that is wrong with a new account, in words for people at a form. */
export async function newAccountProblems(
  accounts: KnownAccounts,
  { name, email, password }: { name: string | undefined; email: string; password: string },
): Promise<FieldProblem[]> {
  const example = 'Enter your email address, like maria@shop.com.'
  const found = [
    name === undefined ? undefined : await newNameProblem(accounts, name),
    emailProblem(email, example) ?? ((await accounts.accountByEmail(email)) && new EmailTaken(email)),
    passwordFieldProblem(password),
  ]
  return found.filter((problem) => problem !== undefined)
}

export function passwordFieldProblem(password: string): FieldProblem | undefined {
  const message = passwordProblem(password)
  return message === undefined ? undefined : new FieldProblem('password', message)
}

export function keyProblem(name: string, expiresAt: number | undefined, now: number): FieldProblem | undefined {
  if (foldName(name) === '') return new FieldProblem('name', 'Enter a name')
  const length = [...name].length
  if (length > KEY_NAME_MAX_LENGTH || /\p{Cc}/u.test(name) || !name.isWellFormed()) {
    return new FieldProblem(
      'name',
      `The key's name must have at most ${KEY_NAME_MAX_LENGTH} characters, all of them printable, got ${length} characters.`,
    )
  }
  return isExpired({ expiresAt }, now)
    ? new FieldProblem('expires', 'The expiry date must be in the future.')
    : undefined
}
