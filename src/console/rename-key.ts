// Renaming a key.
import { KEY_NAME_MAX_LENGTH } from '../accounts/accounts.ts'
import { redacted } from '../accounts/api-keys.ts'
import { Refused } from '../contract/errors.ts'
import type { ApiKey } from '../store/account-store.ts'
import { field, form, type Problems, problemSummary } from './forms.ts'
import { html } from './html.ts'
import type { HtmlPage, MemberVisit, Outcome } from './visit.ts'

export function renamePage(visit: MemberVisit, key: ApiKey, problems: Problems = []): HtmlPage {
  return {
    title: 'Rename a key',
    section: 'keys',
    ...(problems.length > 0 && { status: 400 }),
    body: html`<div class="narrow">
      <h1>Rename <bdi>${key.name}</bdi></h1>
      ${problemSummary(problems)}
      <p>The key itself, <code>${redacted(key)}</code>, stays as it is.</p>
      ${form(visit, {
        action: `/keys/${key.id}/rename`,
        submit: 'Rename',
        cancel: '/keys',
        fields: field({
          name: 'name',
          label: 'Name',
          hint: `1 to ${KEY_NAME_MAX_LENGTH} characters.`,
          value: visit.form.get('name') ?? key.name,
          problems,
        }),
      })}
    </div>`,
  }
}

export async function rename(visit: MemberVisit, key: ApiKey): Promise<Outcome> {
  const problem = await visit.accounts.renameKey(key, visit.form.get('name') ?? '', 'console')
  return problem instanceof Refused ? renamePage(visit, key, [problem]) : { redirect: '/keys?renamed=yes' }
}
