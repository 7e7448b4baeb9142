// Joining a team by an invitation: whoever is signed in with the very address it was sent to. The row of the invitation
// goes in the transaction that makes the membership, so that of several who accept at once one does.

import type { App } from '../../app.ts'
import { forbidden, invalidState, notFound } from '../../contract/errors.ts'
import { foldEmail } from '../../contract/email.ts'
import { deleteInvite } from '../../store/invites.ts'
import { countMembers, insertMember } from '../../store/members.ts'
import { findTeam, findUser } from '../../store/teams.ts'
import type { Caller } from '../credentials/caller.ts'
import { checkMemberSeats } from '../members/seats.ts'
import { lockLiveTeam } from '../teams/lock.ts'
import { getInviteByToken } from './find.ts'
