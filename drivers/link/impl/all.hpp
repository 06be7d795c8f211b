// All members of Link, for the files that instantiate the template (drivers/endpoint).
// All other files include link.hpp only.
#pragma once

#include "drivers/link/impl/ack.hpp"
#include "drivers/link/impl/connection_table.hpp"
#include "drivers/link/impl/credit.hpp"
#include "drivers/link/impl/dump.hpp"
#include "drivers/link/impl/event_loop.hpp"
#include "drivers/link/impl/handshake.hpp"
#include "drivers/link/impl/invariants.hpp"
#include "drivers/link/impl/loss_recovery.hpp"
#include "drivers/link/impl/receive.hpp"
#include "drivers/link/impl/transmit.hpp"
