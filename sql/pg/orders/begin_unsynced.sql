BEGIN; SET LOCAL idle_in_transaction_session_timeout = '5s'; SET LOCAL synchronous_commit = off
