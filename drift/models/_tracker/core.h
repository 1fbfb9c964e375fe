/* What the tracker's extension includes. */

#ifndef DRIFT_CORE_H
#define DRIFT_CORE_H

#define REAL float
#include "../_store/columns.h"
#undef REAL
#include "../_store/sort.h"
#include "../_store/vocabulary.h"
#include "tracker.h"
#include "features.h"

#endif
